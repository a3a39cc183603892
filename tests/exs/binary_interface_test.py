#!/usr/bin/env python3
"""sys/exs.h for every compiler of C, and what libexs.so.1 shows, against what was recorded in binary_interface.txt: a
program that was built once must run with every later library of that soname.

    binary_interface_test.py --record LIBEXS API_FOLDER     prints what there is now
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
HERE = pathlib.Path(__file__).resolve().parent
RECORDED = HERE / "binary_interface.txt"
if "TEST_SRCDIR" in os.environ:
    RUNFILES = pathlib.Path(os.environ["TEST_SRCDIR"]) / os.environ["TEST_WORKSPACE"]
    RECORDED = RUNFILES / "tests/exs/binary_interface.txt"
    LIBRARY, API = RUNFILES / "impl/exs/libexs.so.1", RUNFILES / "api"
else:
    LIBRARY, API = (pathlib.Path(word) for word in sys.argv[2:4])


def run(*command, **arguments):
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, timeout=300, **arguments
    )
    if result.returncode != 0:
        raise AssertionError(f"{command} ended with {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def structures(text):
    """(type, [fields]) of each structure of the header; a field of an array or union by its name."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\n\} (\w+);", text, re.S):
        outer = re.sub(r"union \{.*?\} (\w+);", r"union \1;", body, flags=re.S)
        yield name, re.findall(r"(\w+)(?:\[\d+\])?;", outer)


def interface():
    """What a program that was built depends on: sizes, offsets, constants, symbols."""
    constants = re.findall(r"^#define (\w+) \S", (API / "sys/exs_constants.h").read_text(), re.M)
    lines = []
    for name, fields in structures((API / "sys/exs_types.h").read_text()):
        lines.append(f'  printf("{name} %lu\\n", (unsigned long)sizeof({name}));')
        for field in fields:
            lines.append(f'  printf("{name}.{field} %lu\\n", (unsigned long)offsetof({name}, {field}));')
    for name in constants:
        lines.append(f'  printf("{name} %ld\\n", (long){name});')
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "dump.c"), pathlib.Path(folder, "dump")
        source.write_text("#include <stdio.h>\n#include <sys/exs.h>\nint main(void) {\n%s\n  return 0;\n}\n" % "\n".join(lines))
        run("gcc", "-std=c89", "-I", API, source, "-o", program)
        layout = run(program)
    return layout + "".join(symbol + "\n" for symbol in sorted(symbols()))


def symbols():
    """What libexs defines: with a version, or without, where it is in the place of libc."""
    shown = run("nm", "-D", "--defined-only", "--with-symbol-versions", LIBRARY)
    return {line.split()[2] for line in shown.splitlines() if re.match(r"\S+ [TWVuBDR] ", line)}


def link_libraries(folder):
    for name in ("impl/exs/libexs.so.1", "impl/package/libesdp.so.0.1"):
        pathlib.Path(folder, pathlib.Path(name).name).symlink_to(RUNFILES / name)


# A client that connects, and a server that is accepted, by calls of libc alone; so checked that the compiler takes the
# checked names of them, where it knows such.
CALLS = r"""
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/exs.h>
#include <unistd.h>

static struct sockaddr_in at = {.sin_family = AF_INET};

static void *client(void *unused)
{
  int fd = exs_socket(AF_INET, SOCK_STREAM, 0);
  (void)unused;
  if (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || write(fd, "hello", 5) != 5) _exit(10);
  close(fd);
  return NULL;
}

int main(int argc, char **argv)
{
  char bytes[8];
  struct pollfd asked[1];
  socklen_t len = sizeof(at);
  pthread_t thread;
  size_t room = sizeof(bytes) - (size_t)(argc - 1); /* not known to the compiler */
  int fd, listener;
  (void)argv;
  if (exs_init(EXS_VERSION1) < 0 || (listener = exs_socket(AF_INET, SOCK_STREAM, 0)) < 0) return 1;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, (struct sockaddr *)&at, len) != 0 || listen(listener, 1) != 0) return 2;
  if (getsockname(listener, (struct sockaddr *)&at, &len) != 0) return 3;
  if (pthread_create(&thread, NULL, client, NULL) != 0 || (fd = accept(listener, NULL, NULL)) < 0) return 4;
  asked[0].fd = fd;
  asked[0].events = POLLIN;
  if (poll(asked, (nfds_t)argc, 20000) != 1 || asked[0].revents != POLLIN) return 5;
  if (recv(fd, bytes, room - 7, MSG_PEEK) != 1 || recvfrom(fd, bytes, room - 7, 0, NULL, NULL) != 1) return 6;
  if (read(fd, bytes + 1, room - 4) != 4 || memcmp(bytes, "hello", 5) != 0) return 7;
  if (read(fd, bytes, room) != 0) return 8;
  pthread_join(thread, NULL);
  return 0;
}
"""


class BinaryInterfaceTest(unittest.TestCase):
    def compile(self, *compiler):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "user.c")
            source.write_text(
                "#include <sys/exs.h>\n#include <sys/exs.h>\n"
                "int main(void) {\n  exs_ahandle_t all = (exs_ahandle_t)-1;\n  uintptr_t pages = NBPG;\n"
                "  return exs_init(EXS_VERSION1) == -1 && all != 0 && pages != 0;\n}\n"
            )
            run(*compiler, "-Wall", "-Wextra", "-Werror", "-I", API, "-c", source, "-o", pathlib.Path(folder, "user.o"))

    def test_the_header_is_c89_for_each_compiler_and_c_plus_plus_too(self):
        for compiler in ("gcc", "clang-14"):
            for standard in ("c89", "c99", "c17"):
                with self.subTest(compiler=compiler, standard=standard):
                    self.compile(compiler, f"-std={standard}", "-pedantic", "-Wstrict-prototypes")
        self.compile("g++", "-std=c++98", "-pedantic", "-x", "c++")
        self.compile("g++", "-std=c++20", "-pedantic", "-x", "c++")

    def test_nothing_that_was_recorded_has_changed(self):
        now, recorded = interface(), RECORDED.read_text()
        self.assertGreater(len(recorded.splitlines()), 150)
        self.assertEqual(recorded, now, "what is new is recorded with --record; what was there must stay")

    def test_every_call_of_the_header_is_a_symbol_and_nothing_else_is(self):
        text = re.sub(r"/\*.*?\*/", "", (API / "sys/exs.h").read_text(), flags=re.S)
        declared = set(re.findall(r"\b(exsx?_\w+)\(", text))
        self.assertGreater(len(declared), 25)
        version = {name: "EXSX_1.0" if name.startswith("exsx_") else "EXS_1.0" for name in declared}
        in_place_of_libc = {symbol for symbol in symbols() if "@" not in symbol}
        self.assertGreater(len(in_place_of_libc), 30)
        self.assertEqual({f"{name}@@{version[name]}" for name in declared}, symbols() - in_place_of_libc)
        libc = run("nm", "-D", "--defined-only", LIBC)
        self.assertEqual(set(), in_place_of_libc - set(re.findall(r" [TWi] (\w+)@", libc)))

    def test_the_library_has_its_soname_stays_loaded_and_uses_the_shared_library(self):
        dynamic = run("readelf", "-d", LIBRARY)
        self.assertIn("soname: [libexs.so.1]", dynamic)
        self.assertIn("NODELETE", dynamic)
        self.assertIn("[libesdp.so.0.1]", dynamic)
        self.assertRegex(dynamic, r"R(UN)?PATH.*\[\$ORIGIN[\]:]")

    def test_a_program_that_is_linked_with_it_calls_it_in_place_of_libc(self):
        with tempfile.TemporaryDirectory() as folder:
            link_libraries(folder)
            source, program = pathlib.Path(folder, "calls.c"), pathlib.Path(folder, "calls")
            source.write_text(CALLS)
            for fortify in ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"):
                with self.subTest(fortify=fortify):
                    library = f"{folder}/libexs.so.1"
                    run("gcc", "-O2", "-Wall", "-Werror", fortify, "-I", API, source, library, "-pthread", "-o", program)
                    run(program, env=dict(os.environ, LD_LIBRARY_PATH=folder, EXS_FABRIC="qpip"))

    def test_it_can_be_loaded_and_is_never_unloaded(self):
        with tempfile.TemporaryDirectory() as folder:
            link_libraries(folder)
            source, program = pathlib.Path(folder, "load.c"), pathlib.Path(folder, "load")
            source.write_text(
                "#include <dlfcn.h>\n#include <stdlib.h>\n"
                "int main(void) {\n"
                '  void *library = dlopen("libexs.so.1", RTLD_NOW | RTLD_LOCAL);\n'
                "  int (*init)(int);\n"
                "  if (library == NULL) return 1;\n"
                '  *(void **)&init = dlsym(library, "exs_init");\n'
                '  setenv("EXS_FABRIC", "qpip", 1);\n'
                "  if (init(0x10070) != 0x10070) return 2;\n"
                "  dlclose(library);\n"
                "  return init(0x10070) == 0x10070 ? 0 : 3;\n}\n"
            )
            run("gcc", "-D_GNU_SOURCE", source, "-o", program)
            run(program, env=dict(os.environ, LD_LIBRARY_PATH=folder))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        print(interface(), end="")
    else:
        unittest.main(argv=sys.argv[:1], verbosity=2)
