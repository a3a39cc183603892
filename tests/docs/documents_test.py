#!/usr/bin/env python3
"""The reader of documents, tried on planted ones, and every block of the real ones run or justified."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import documents

ROOT = os.environ.get("TEST_SRCDIR", "") and os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
ROOT = ROOT or os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))


def only(text):
    blocks = documents.blocks_of("planted.md", text)
    assert len(blocks) == 1, blocks
    return blocks[0]


class DocumentsTest(unittest.TestCase):
    def test_an_output_belongs_to_the_command_before_it(self):
        block = only("```sh\necho 1\n```\nprints\n```text\n1\n```\n")
        self.assertEqual(("echo 1\n", "1\n"), (block.text, block.expected))

    def test_a_mark_holds_for_the_next_block_only(self):
        first, second = documents.blocks_of("planted.md", "<!-- not run: needs a network -->\n```sh\na\n```\nb\n```sh\nc\n```\n")
        self.assertEqual(("not run", "needs a network", ""), (first.mark, first.argument, second.mark))

    def test_a_language_that_nothing_runs_is_complained_of(self):
        self.assertIn("no test runs", documents.complaint(only("```perl\nprint 1\n```\n")))

    def test_a_block_without_a_language_is_complained_of(self):
        self.assertIsNotNone(documents.complaint(only("```\nls\n```\n")))

    def test_an_output_without_a_command_is_complained_of(self):
        self.assertIn("no command", documents.complaint(only("```text\n1\n```\n")))

    def test_a_justification_must_say_something(self):
        self.assertIsNotNone(documents.complaint(only("<!-- not run: no -->\n```sh\nls\n```\n")))

    def test_a_block_without_an_end_is_refused(self):
        with self.assertRaises(ValueError):
            documents.blocks_of("planted.md", "```sh\nls\n")

    def test_numbers_and_blanks_may_differ_and_words_may_not(self):
        self.assertTrue(documents.same_but_for_numbers("moved 10.5 MiB\n", "moved   2048 MiB\n\n"))
        self.assertFalse(documents.same_but_for_numbers("moved 10 MiB\n", "moved 10 GiB\n"))

    def test_every_block_of_every_document_is_run_or_justified(self):
        complaints, count = [], 0
        for name, text in documents.documents(ROOT):
            for block in documents.blocks_of(name, text):
                count += 1
                if documents.complaint(block):
                    complaints.append("%s %s" % (block.place(), documents.complaint(block)))
        self.assertEqual([], complaints)
        self.assertGreater(count, 10, "the documents were not found")


if __name__ == "__main__":
    unittest.main(verbosity=2)
