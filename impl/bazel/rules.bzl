"""The one place for compiler flags and features. The attributes are those of the native rules."""

load(":together.bzl", "compiled_together")

# What g++ 12 falsely says, when it optimises, of code inlined from its own standard library. The sanitizers look instead.
_NOT_BELIEVED = [
    "-Wno-array-bounds",
    "-Wno-maybe-uninitialized",
    "-Wno-restrict",
    "-Wno-stringop-overflow",
    "-Wno-stringop-overread",
    "-Wno-unknown-warning-option",  # clang has no such names
]

ESDP_COPTS = [
    "-std=c++20",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wnon-virtual-dtor",
    "-Werror",
] + _NOT_BELIEVED

# A test's own text runs once: optimising it would cost more than it gives.
_UNOPTIMISED = ["-O0", "-U_FORTIFY_SOURCE"]

# What the header that tests share is precompiled with.
ESDP_TEST_COPTS = ESDP_COPTS + _UNOPTIMISED

# Direct dependencies only; clang checks it, gcc ignores it.
_FEATURES = ["layering_check"]

def _with_flags(kwargs):
    kwargs["copts"] = ESDP_COPTS + kwargs.pop("copts", [])
    kwargs["features"] = _FEATURES + kwargs.pop("features", [])
    return kwargs

# The rooms that may use the C++ standard library and nothing else.
_PURE = ["impl/base", "impl/sdp"]

# What pybind11's types are hidden with: clang takes no header that was precompiled without, and g++ reads it again.
ESDP_HIDDEN = ["-fvisibility=hidden"]

# What users see is compiled as they compile it.
_AS_USERS_DO = ["api", "samples"]

# The library that is preloaded has libc alone: no exceptions, so that a thread may be cancelled in any call; no types
# at run time, no guards of locals.
_LIBC_ALONE = ["-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-fvisibility=hidden"]

def _lies_in(rooms):
    return native.package_name().split("/")[0] in rooms or "/".join(native.package_name().split("/")[:2]) in rooms

def _with_precompiled_header(kwargs, precompiled = None):
    if _lies_in(["impl/switch"]) and native.package_name() != "impl/switch/engine":
        kwargs["copts"] = _LIBC_ALONE + kwargs.pop("copts", [])
        return _with_flags(kwargs)
    if _lies_in(_AS_USERS_DO) or not [source for source in kwargs.get("srcs", []) if source.endswith(".cc")]:
        return _with_flags(kwargs)
    name = precompiled or ("standard" if _lies_in(_PURE) else "bindings" if _lies_in(["bindings"]) else "common")
    shared = ["-include", "$(BINDIR)/impl/precompiled/{0}/{0}.h".format(name)]
    kwargs["copts"] = shared + kwargs.pop("copts", [])
    kwargs["deps"] = kwargs.pop("deps", []) + ["//impl/precompiled:" + name]
    return _with_flags(kwargs)

def esdp_cc_library(name, precompiled = None, **kwargs):
    """A library of any room, or what several programs share. Its C++ sources find what most include precompiled.

    `precompiled` says which of impl/precompiled, where it is not the room's: the flags of both have to be the same.
    """
    native.cc_library(name = name, **compiled_together(name, _with_precompiled_header(kwargs, precompiled)))

def esdp_cc_binary(name, **kwargs):
    native.cc_binary(name = name, **compiled_together(name, _with_precompiled_header(kwargs)))

def esdp_proto_library(name, src, runtime = "lite", **kwargs):
    """What protoc makes of NAME.proto: #include <NAME.pb.h>. Its text is not ours, nor are its warnings.

    `runtime` is "full" where messages are read from text.
    """
    native.genrule(
        name = name + "_generated",
        srcs = [src],
        outs = ["generated/%s.pb.%s" % (name, end) for end in ("h", "cc")],
        cmd = "/usr/bin/protoc --proto_path=$$(dirname $<) --cpp_out=$(RULEDIR)/generated $<",
    )
    native.cc_library(
        name = name,
        srcs = ["generated/%s.pb.cc" % name],
        hdrs = ["generated/%s.pb.h" % name],
        copts = ["-std=c++20", "-w"],
        includes = ["generated"],
        deps = ["@protobuf//:" + runtime],
        **kwargs
    )

def esdp_c_binary(name, **kwargs):
    """A program in C, as a user of libexs writes it."""
    native.cc_binary(name = name, copts = ["-std=c89", "-pedantic", "-Wall", "-Wextra", "-Werror"], **kwargs)

def _with_test_flags(kwargs):
    own = kwargs.pop("copts", [])
    if own == ESDP_HIDDEN:
        kwargs["copts"] = _UNOPTIMISED + own
        return _with_flags(kwargs)
    shared = ["-include", "$(BINDIR)/tests/precompiled/headers/headers.h"]
    kwargs["copts"] = _UNOPTIMISED + shared + own
    kwargs["deps"] = kwargs.pop("deps", []) + ["//tests/precompiled:headers"]
    return _with_flags(kwargs)

def esdp_cc_test(name, size = "small", **kwargs):
    """A GoogleTest program; its deps name @system//:gtest_main themselves."""
    native.cc_test(name = name, size = size, **_with_test_flags(kwargs))

def esdp_cc_test_library(name, **kwargs):
    """What several test programs share, compiled like their own text."""
    native.cc_library(name = name, testonly = True, **compiled_together(name, _with_test_flags(kwargs)))

def esdp_python_test(name, data = [], tags = [], size = "medium", **kwargs):
    """Tests in NAME.py for pytest; each case counts. The package esdp is there to import.

    Under no sanitizer: the interpreter is Debian's own, and a module with a sanitizer's runtime does not load into it.
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tests/bindings/python:run_pytest.py"],
        args = ["$(location %s.py)" % name],
        data = [name + ".py", "//tests/bindings/python:support", "//bindings/python:esdp"] + data,
        tags = ["plain_build_only"] + tags,
        **kwargs
    )
