"""Runs the tests of this folder: writes the numbers of passed and failed ones to the first file that is named, the names of those
that failed to the second, and of those that passed when they ran once more to the third."""

import pathlib
import signal
import sys
import unittest

# So many tests that fail do so for a reason: they do not run once more.
MANY = 8
# Longer than any of the tests takes on a busy machine.
PATIENCE_S = 300


class Result(unittest.TextTestResult):
    """Ends a test that hangs, so that the others run."""

    def startTest(self, test):
        super().startTest(test)
        signal.alarm(PATIENCE_S)

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)


def interrupt(_signal, _frame):
    raise TimeoutError(f"the test took longer than {PATIENCE_S} s")


def run(suite: unittest.TestSuite) -> unittest.TestResult:
    return unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)


def main() -> int:
    folder = pathlib.Path(__file__).parent
    signal.signal(signal.SIGALRM, interrupt)
    result = run(unittest.defaultTestLoader.discover(str(folder)))
    failed = failures(result)
    flaky = []
    if 0 < len(failed) <= MANY and all(isinstance(test, unittest.TestCase) for test, _ in result.failures + result.errors):
        once_more = run(unittest.defaultTestLoader.loadTestsFromNames(failed))
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
