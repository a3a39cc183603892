"""Each method says how it is called, to inspect.signature and to help; options are of the type that they are."""

import ast
import inspect
import pydoc

import esdp
import pytest

STUBS = "bindings/python/esdp/_core.pyi"


def members(of_kind):
    with open(STUBS, encoding="utf-8") as file:
        classes = [node for node in ast.parse(file.read()).body if isinstance(node, ast.ClassDef)]
    for node in classes:
        for member in node.body:
            if not isinstance(member, ast.FunctionDef) or member.name.startswith("_") or node.name.startswith("_"):
                continue
            if [decorator.id for decorator in member.decorator_list] == of_kind:
                yield pytest.param(node.name, member, id=f"{node.name}.{member.name}")


@pytest.mark.parametrize("name, stub", members([]))
def test_a_method_has_the_signature_of_its_stub_and_words(name, stub):
    method = getattr(getattr(esdp, name), stub.name)
    parameters = inspect.signature(method).parameters
    positional = [given for given, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert positional == [given.arg for given in stub.args.args]
    if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        keywords = [given for given, one in parameters.items() if one.kind is one.KEYWORD_ONLY]
        assert keywords == [given.arg for given in stub.args.kwonlyargs]
    words = inspect.getdoc(method)
    assert words and "--" not in words and not words.startswith(stub.name)


@pytest.mark.parametrize("name, stub", members(["property"]))
def test_a_property_has_words(name, stub):
    words = inspect.getdoc(getattr(getattr(esdp, name), stub.name))
    assert words and words.endswith("."), words


def test_defaults_are_seen_and_self_is_not_asked_of_who_has_it():
    with esdp.Context(fabric="sim:1") as context, context.queue() as queue:
        assert str(inspect.signature(queue.get)) == "(min=1, timeout=None, max=64)"
        assert str(inspect.signature(context.queue)) == "(**options)"
    assert "complete_at='reusable'" in str(inspect.signature(esdp.Socket.send))
    assert "get(self, min=1, timeout=None, max=64)" in pydoc.plain(pydoc.render_doc(esdp.EventQueue))
    assert str(inspect.signature(esdp.Context.diagnose)) == "(**options)"


@pytest.mark.parametrize("option, value, text", [
    ("checksum", "no", "checksum is a bool, not str"),
    ("checksum", 1, "checksum is a bool, not int"),
    ("zcopy_send_min", True, "zcopy_send_min is an int, not bool"),
    ("zcopy_send_min", 1.5, "zcopy_send_min is an int, not float"),
    ("progress_spin", "1", r"progress_spin is a float \(seconds\), not str"),
    ("progress_cpu", "0", "progress_cpu is an int, not str"),
    ("fabric", b"qpip", "fabric is a str, not bytes"),
    ("progress", 1, "progress is a str, not int"),
])
def test_an_option_of_another_type_is_named(option, value, text):
    with pytest.raises(TypeError, match=text):
        esdp.Context(**{"fabric": "sim:1", option: value})


@pytest.mark.parametrize("address, error, text", [
    (3, TypeError, "an address is a str such as"),
    (("127.0.0.1", "x"), TypeError, "^a port is an int from 0 to 65535, not str$"),
    (("127.0.0.1", 65536), ValueError, "^a port is 0 to 65535, not 65536$"),
    (("127.0.0.1", -1), ValueError, "^a port is 0 to 65535, not -1$"),
    ((1, 1), TypeError, "^a host is a str, not int$"),
])
def test_what_is_no_address_is_told_what_it_should_be(address, error, text):
    with esdp.Context(fabric="sim:1") as context, context.socket() as socket:
        with pytest.raises(error, match=text):
            socket.bind(address)


def test_a_world_is_a_context():
    with pytest.raises(TypeError, match="^world_of is a Context, not int$"):
        esdp.Context(fabric="sim:1", world_of=3)


def test_an_option_of_a_socket_is_checked_by_its_type_and_range():
    with esdp.Context(fabric="sim:1", progress_cpu=None) as context:
        with pytest.raises(TypeError, match="as_deployed is a bool, not str"):
            context.socket(as_deployed="no")
        with pytest.raises(TypeError, match="depth is an int, not str"):
            context.queue(depth="many")
        with pytest.raises(ValueError, match="depth is out of range: -1"):
            context.queue(depth=-1)
        with context.socket(adaptive_threshold=True, linger=1, as_deployed=None) as socket:
            socket.set_option("linger", 2)
            assert socket.get_option("linger") == 2.0
            for value in ("60", True, None):
                with pytest.raises(TypeError, match=r"linger is a float \(seconds\), not "):
                    socket.set_option("linger", value)
            with pytest.raises(TypeError, match="adaptive_threshold is a bool, not int"):
                socket.set_option("adaptive_threshold", 1)
