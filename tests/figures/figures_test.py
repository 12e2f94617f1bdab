"""Regenerates all figures from their committed data, and compares the numbers
in documents with them: those before a comment such as <!--1.1 lru--> (see
figures/common.py, `tell`)."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARKED = re.compile(r"(\S+?)(?: ?%)?<!--(\d\.\d) ([^>]*?)-->")
TOLD = re.compile(r"^(.+) = (\S+)$", re.MULTILINE)


def documents():
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")),
            *sorted((ROOT / "figures").glob("**/*.md"))]


def difference(text, value):
    """What is wrong with a number as a document has it; None if nothing is."""
    digits = text.lstrip("(").replace(",", "")
    try:
        shown = float(digits)
    except ValueError:
        return f"'{text}' is no number"
    decimals = len(digits.partition(".")[2])
    if abs(shown - value) > 0.5000001 * 10 ** -decimals:
        return f"'{text}' is {value} in the figure"
    return None


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """cls.numbers: {figure: {name: value}}, of copies plotted anew."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.copy = pathlib.Path(folder.name, "figures")
        shutil.copytree(ROOT / "figures", cls.copy, ignore=lambda _, names: [
            name for name in names if name.endswith((".png", ".pdf"))])
        cls.numbers = {}
        for plot in sorted(cls.copy.glob("figure.*/plot.py")):
            said = subprocess.run(
                [sys.executable, plot], check=True, capture_output=True,
                text=True, env=dict(os.environ, PYTHONPATH=str(cls.copy)))
            cls.numbers[plot.parent.name.removeprefix("figure.")] = {
                name: float(value) for name, value in TOLD.findall(said.stdout)}

    def test_each_figure_is_made_anew(self):
        committed = {path.relative_to(ROOT / "figures")
                     for kind in ("png", "pdf")
                     for path in ROOT.glob(f"figures/figure.*/*.{kind}")}
        self.assertGreaterEqual(len(committed), 2 * len(self.numbers))
        for path in committed:
            self.assertTrue((self.copy / path).exists(), path)

    def test_numbers_in_documents_are_the_figures(self):
        marked = set()
        for document in documents():
            text = document.read_text(encoding="utf-8")
            for shown, figure, name in MARKED.findall(text):
                with self.subTest(document=document.name, name=name):
                    self.assertIn(name, self.numbers[figure])
                    self.assertIsNone(difference(
                        shown, self.numbers[figure][name]))
                marked.add(figure)
        self.assertEqual(marked, set(self.numbers), "figures without numbers")

    def test_each_comment_follows_a_number(self):
        for document in documents():
            text = document.read_text(encoding="utf-8")
            self.assertEqual(len(re.findall(r"<!--\d\.\d ", text)),
                             len(MARKED.findall(text)), document)

    def test_a_wrong_number_is_seen(self):
        self.assertIsNone(difference("1.02", 1.0249))
        self.assertIsNotNone(difference("1.02", 1.0251))
        self.assertIsNone(difference("(1,240", 1240.4))
        self.assertIsNotNone(difference("some", 1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
