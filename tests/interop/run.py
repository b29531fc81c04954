"""Runs the tests of this folder: writes the numbers of passed and failed ones to the first file that is named, the names of those
that failed to the second, and of those that passed when they ran once more to the third."""

import pathlib
import sys
import unittest

# So many tests that fail do so for a reason: they do not run once more.
MANY = 8


def main() -> int:
    folder = pathlib.Path(__file__).parent
    suite = unittest.defaultTestLoader.discover(str(folder))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    failed = failures(result)
    flaky = []
    if 0 < len(failed) <= MANY and all(isinstance(test, unittest.TestCase) for test, _ in result.failures + result.errors):
        once_more = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromNames(failed))
        failed, first = failures(once_more), failed
        flaky = [name for name in first if name not in failed]
    passed = max(0, result.testsRun - len(failed) - len(result.skipped))
    pathlib.Path(sys.argv[1]).write_text(f"{passed} {len(failed)}\n")
    for names, file in ((failed, sys.argv[2]), (flaky, sys.argv[3])):
        pathlib.Path(file).write_text("".join(f"{name}\n" for name in names))
    return 1 if failed else 0


def failures(result: unittest.TestResult) -> list[str]:
    """The names of the tests that failed, each once."""
    return list(dict.fromkeys(getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors))


if __name__ == "__main__":
    sys.exit(main())
