# The two commands: `make run` builds and starts the server, `make test` passes all tests. `make soak` loads a server for an hour.
# Each installs what it needs by itself (apt, npm, pip); see scripts/.

CARGO ?= cargo
export CARGO

TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: run test soak build web lint fmt browser janode interop

run: build
	@exec $(TARGET)/release/portunus $(ARGS)

build: web
	@scripts/setup build
	@echo "==> server (release; the first build takes some minutes)"
	@$(CARGO) build --release --locked -q -p portunus

web:
	@scripts/setup web

test:
	@scripts/test

soak:
	@scripts/soak $(ARGS)

# Parts of `make test`, for when you work on one.
lint fmt browser janode interop:
	@scripts/test $@
