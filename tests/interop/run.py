"""Runs the tests of this folder: writes the numbers of passed and failed ones to the first file that is named, and the names
of those that failed to the second."""

import pathlib
import sys
import unittest


def main() -> int:
    folder = pathlib.Path(__file__).parent
    suite = unittest.defaultTestLoader.discover(str(folder))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    passed = max(0, result.testsRun - failed - len(result.skipped))
    pathlib.Path(sys.argv[1]).write_text(f"{passed} {failed}\n")
    names = [test.id() for test, _ in result.failures + result.errors]
    pathlib.Path(sys.argv[2]).write_text("".join(f"{name}\n" for name in names))
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
