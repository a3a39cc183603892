#!/usr/bin/env python3
"""esdp_diag, on this machine and on planted ones."""

import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../programs"))

from programs import RUNFILES, ProgramTest, nobody_listens

ESDP_DIAG = os.path.join(RUNFILES, "tools/esdp_diag/esdp_diag")
ADVICE = re.compile(r"^-- ([a-z-]+): ", re.M)


class EsdpDiagTest(ProgramTest):
    def plant(self, files):
        """A folder that looks like the root of a machine."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for path, text in files.items():
            full = os.path.join(folder.name, "sys", path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text + "\n")
        return folder.name

    def device(self, state="4: ACTIVE", interface="lo"):
        port = "class/infiniband/mlx5_0/ports/1/"
        return self.plant(
            {
                port + "state": state,
                port + "link_layer": "Ethernet",
                port + "rate": "100 Gb/sec (4X EDR)",
                port + "gids/0": "fe80:0000:0000:0000:0000:0000:0000:0001",
                port + "gids/1": "0000:0000:0000:0000:0000:ffff:0a00:0001",
                port + "gids/2": "0000:0000:0000:0000:0000:0000:0000:0000",
                port + "gid_attrs/types/1": "RoCE v2",
                port + "gid_attrs/ndevs/1": interface,
            }
        )

    def look(self, *options, code=0):
        return self.run_program(ESDP_DIAG, *options, code=code)

    def test_it_tells_fabrics_limits_and_what_auto_chooses(self):
        output = self.look("--brief")
        for words in (r"^  qpip +available: ", r"^  verbs +", r"^  locked memory +\S+", r"^  chosen +local$", r"^  why +\S+"):
            self.assertRegex(output, "(?m)" + words)

    def test_it_tells_by_which_interface_an_address_is_reached(self):
        self.assertRegex(self.look("--brief", "127.0.0.1"), r"(?m)^  route +from 127\.0\.0\.1 by lo$")
        self.assertRegex(self.look("--brief", "127.0.0.1:7471"), r'(?m)^"auto" for 127\.0\.0\.1:7471$')

    def test_a_machine_without_a_device_gets_advice(self):
        root = self.plant({"module/ib_uverbs/x": ""})
        output = self.look("--root", root)
        self.assertIn("modules that are not loaded: rdma_ucm\n", output)
        self.assertIn("no-device", ADVICE.findall(output))
        self.assertNotIn("**", output)
        self.assertNotIn("<!--", output)

    def test_devices_are_shown_with_the_gids_that_are_set(self):
        output = self.look("--brief", "--root", self.device())
        self.assertRegex(output, r"(?m)^  mlx5_0 +port 1 ACTIVE, Ethernet, 100 Gb/sec \(4X EDR\)$")
        self.assertEqual(2, output.count("GID "), output)
        self.assertRegex(output, r"(?m)GID 1 0000:\S+ RoCE v2 on lo$")

    def test_a_device_whose_ports_are_down_gets_advice(self):
        names = ADVICE.findall(self.look("--root", self.device(state="1: DOWN")))
        self.assertIn("link-down", names)
        self.assertNotIn("link-down", ADVICE.findall(self.look("--root", self.device())))

    def test_a_device_on_another_interface_than_the_route_gets_advice(self):
        self.assertNotIn("wrong-gid", ADVICE.findall(self.look("127.0.0.1", "--root", self.device(interface="lo"))))
        self.assertIn("wrong-gid", ADVICE.findall(self.look("127.0.0.1", "--root", self.device(interface="eth7"))))

    def test_little_lockable_memory_matters_only_with_a_device(self):
        limited = ("sh", "-c", 'ulimit -l 64; exec "$0" "$@"', ESDP_DIAG)
        self.assertIn("memlock", ADVICE.findall(self.run_program(*limited, "--root", self.device())))
        self.assertNotIn("memlock", ADVICE.findall(self.run_program(*limited, "--root", self.plant({}))))

    def test_few_descriptors_get_advice(self):
        output = self.run_program("sh", "-c", 'ulimit -n 256; exec "$0"', ESDP_DIAG)
        self.assertIn("open-files", ADVICE.findall(output))

    def test_a_server_that_listens_is_reached(self):
        _, port = self.start(os.path.join(RUNFILES, "samples/echo_server"), until=r"listening on .*:(\d+)$")
        output = self.look("--brief", "--try", "127.0.0.1:" + port.group(1))
        self.assertRegex(output, r"(?m)^  tried +connected over qpip, from 127\.0\.0\.1:\d+$")

    def test_where_nobody_listens_it_says_so_and_fails(self):
        with nobody_listens() as port:
            output = self.look("--try", "127.0.0.1:" + port, code=1)
        self.assertRegex(output, r"(?m)^  tried +connection refused: ")
        self.assertIn("refused", ADVICE.findall(output))

    def test_every_section_of_the_page_can_be_asked_for(self):
        with open(os.path.join(RUNFILES, "docs/troubleshooting.md"), encoding="utf-8") as file:
            names = re.findall(r"^## ([a-z-]+): ", file.read(), re.M)
        self.assertGreater(len(names), 8)
        for name in names:
            self.assertIn("Cure: ", self.look("--explain", name))
        self.look("--explain", "nothing", code=1)
        self.assertEqual(names, re.findall(r"^  ([a-z-]+): ", self.complaints, re.M))

    def test_what_it_does_not_understand_is_named(self):
        for words in (("--bogus",), ("--fabric",), ("not.an.address",)):
            self.look(*words, code=2)
            self.assertIn(words[0], self.complaints)
        self.assertIn('"sim"', self.look("--fabric", "nonsense", "--brief"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
