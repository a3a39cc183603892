"""Every sample in Python does what it says, and C++ and Python talk to each other."""

import os
import re
import subprocess
import sys

import pytest

PYTHON = "samples/python/"
LIMIT = 60.0


def command(program, *arguments):
    interpreter = [sys.executable, "-W", "error::ResourceWarning"] if program.endswith(".py") else []
    return [*interpreter, program, *arguments]


def run(program, *arguments, text=None):
    result = subprocess.run(command(program, *arguments), input=text, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout + result.stderr
    return result.stdout


@pytest.fixture
def start():
    """Starts a server; gives it and its port."""
    started = []

    def begin(program, *arguments):
        process = subprocess.Popen(command(program, *arguments), stdout=subprocess.PIPE, text=True)
        started.append(process)
        line = process.stdout.readline()
        return process, re.search(r"listening on .*:(\d+)$", line).group(1)

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("server", [PYTHON + "echo.py", "samples/echo_server"])
@pytest.mark.parametrize("client", [PYTHON + "echo.py", "samples/echo_client"])
def test_echo_goes_between_python_and_cpp(start, server, client):
    process, port = start(server, "--port", "0", "--clients", "2")
    assert run(client, "--port", port, "--text", "once more") == "once more\n"
    long_text = "x" * 100_000
    assert run(client, "--port", port, "--text", long_text) == long_text + "\n"
    output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0 and output.count("client served") == 2


def test_arrays_are_exchanged_without_a_copy():
    output = run(PYTHON + "arrays.py")
    share = int(re.search(r"the product is right; (\d+) %", output).group(1))
    assert share >= 60  # of the receive here and the sends; the last byte of each advert may go in a message


def test_a_chat_passes_lines_on_to_the_others(start):
    _, port = start(PYTHON + "chat.py")
    listening = subprocess.Popen(
        command(PYTHON + "chat.py", "--port", port, "--name", "Bob"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        # Bob is there when he hears somebody; Ada may be there before he speaks.
        listening.stdin.write("anybody?\n")
        listening.stdin.flush()
        for _ in range(1000):
            assert run(PYTHON + "chat.py", "--port", port, "--name", "Ada", text="hello\n") in ("", "Bob: anybody?\n")
            line = read_ready_line(listening)
            if line:
                break
        assert line == "Ada: hello\n"
        listening.communicate(timeout=LIMIT)
        assert listening.returncode == 0
    finally:
        listening.kill()


def read_ready_line(process):
    import select

    return process.stdout.readline() if select.select([process.stdout], [], [], 0.2)[0] else ""


def test_a_plot_is_drawn(tmp_path):
    # matplotlib looks for fonts the first time, and on a busy machine says on standard error that it takes long.
    subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], check=True, timeout=LIMIT, capture_output=True)
    output = run(PYTHON + "throughput.py", "--seconds", "0.02", "--output", str(tmp_path / "plot.png"))
    assert output.count("MB/s") == 2
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_no_sample_is_left_out():
    here = {name for name in os.listdir(PYTHON) if name.endswith(".py")}
    assert here == {"echo.py", "arrays.py", "chat.py", "throughput.py"}
