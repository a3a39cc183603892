"""Programs and shared libraries that are built otherwise than the rest of an optimised build.

Whole programs are what g++ compiles as one, across the border of every file.

A fifth of what a small message costs is the way from one function to the next. Only what is installed is built
like this: for tests and archives it would cost more time than it gives, and an archive must fit any compiler.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load(":archives.bzl", "linked_without_library")
load(":rules.bzl", "esdp_cc_binary")

_COMPILE = "//command_line_option:copt"
_LINK = "//command_line_option:linkopt"
_MODE = "//command_line_option:compilation_mode"
_PIC = "//command_line_option:force_pic"

# What g++ 12 sums up of the memory that a function touches it gets wrong across files. Where impl/sdp/wire/codec.cc alone is
# compiled with -O3 and this flag is missing, callers in other files take sdp::wire::Decode for a function that leaves the kind
# of its message alone, and programs crash at the first connection. With -O2 none was seen to, but nothing rules it out.
_TRUSTED = ["-fno-ipa-modref"]

# A call costs more than what most functions on the way of a small message do. What lies behind many conditions is no less
# worth it: all the way of a message does.
_INLINED = [
    "--param=max-inline-insns-auto=200",
    "--param=inline-min-speedup=1",
    "--param=inline-unit-growth=300",
    "--param=hot-bb-frequency-fraction=1000000",
]

# The link needs all of them too: some are not kept with what was compiled.
_FAST = _TRUSTED + _INLINED

def _as_one_impl(settings, attr):
    wanted = str(settings[_MODE]) == "opt" and attr.compiler_can
    return {
        _COMPILE: settings[_COMPILE] + (["-flto"] + _FAST if wanted else []),
        _LINK: settings[_LINK] + (["-flto=auto"] + _FAST if wanted else []),
        # So that programs and shared libraries share what is compiled; the link takes back what it costs a program.
        _PIC: wanted or settings[_PIC],
    }

_as_one = transition(
    implementation = _as_one_impl,
    inputs = [_COMPILE, _LINK, _MODE, _PIC],
    outputs = [_COMPILE, _LINK, _PIC],
)

# What the library checks of the program that uses it, and of itself at a price, is there without NDEBUG.
def _checked_impl(settings, _attr):
    optimised = str(settings[_MODE]) == "opt"
    return {
        _COMPILE: settings[_COMPILE] + (["-Og"] if optimised else []),
        _MODE: "dbg" if optimised else settings[_MODE],  # which has the checks too: nothing is built twice
    }

_checked = transition(
    implementation = _checked_impl,
    inputs = [_COMPILE, _MODE],
    outputs = [_COMPILE, _MODE],
)

def _linked_impl(ctx):
    linked = ctx.attr.linked[0][DefaultInfo]
    program = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = program, target_file = ctx.executable.linked, is_executable = True)
    return [DefaultInfo(
        executable = program,
        files = depset([program]),
        runfiles = ctx.runfiles([program]).merge(linked.default_runfiles),
    )]

_ALLOWED = attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist")

_checked_library = rule(
    implementation = _linked_impl,
    attrs = {
        "linked": attr.label(cfg = _checked, executable = True, mandatory = True),
        "_allowlist_function_transition": _ALLOWED,
    },
    executable = True,
)

_whole_program = rule(
    implementation = _linked_impl,
    attrs = {
        "linked": attr.label(cfg = _as_one, executable = True, mandatory = True),
        "compiler_can": attr.bool(),
        "_allowlist_function_transition": _ALLOWED,
    },
    executable = True,
)

def _as_shipped_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    library = cc_common.merge_cc_infos(cc_infos = [target[CcInfo] for target in ctx.attr.library])
    as_one = ctx.var["COMPILATION_MODE"] == "opt" and ctx.attr.compiler_can
    linked = cc_common.link(
        actions = ctx.actions,
        name = ctx.label.name,
        cc_toolchain = toolchain,
        feature_configuration = features,
        linking_contexts = [linked_without_library(ctx.attr.deps), library.linking_context],
        user_link_flags = ctx.fragments.cpp.linkopts +
                          (["-flto=auto"] + _FAST if as_one else []),
    )
    runfiles = ctx.runfiles()
    for target in ctx.attr.deps:
        runfiles = runfiles.merge(target[DefaultInfo].default_runfiles)
    return [DefaultInfo(executable = linked.executable, runfiles = runfiles)]

_as_shipped_test = rule(
    implementation = _as_shipped_impl,
    attrs = {
        "compiler_can": attr.bool(),
        "deps": attr.label_list(providers = [CcInfo]),
        "library": attr.label_list(cfg = _as_one, providers = [CcInfo]),
        "_allowlist_function_transition": _ALLOWED,
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    test = True,
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def esdp_as_shipped_test(name, **kwargs):
    """A test of the library's inner parts, compiled and linked as the library is that is installed.

    Args:
      name: of the test.
      **kwargs: `deps` are the libraries of tests, which are compiled as always; `library` is what they use of the library.
    """
    _as_shipped_test(
        name = name,
        compiler_can = select({
            "//impl/bazel:gcc": True,
            "//conditions:default": False,
        }),
        **kwargs
    )

def esdp_whole_program(name, linked, **kwargs):
    """A binary by this name; `linked` is what it is called where it is linked.

    Args:
      name: of the target and its file.
      linked: the name for a target of the native rule.
      **kwargs: as for esdp_cc_binary.
    """
    esdp_cc_binary(name = linked, tags = ["manual"], **kwargs)  # nobody wants it by itself
    _whole_program(
        name = name,
        compiler_can = select({
            "//impl/bazel:gcc": True,
            "//conditions:default": False,
        }),
        linked = linked,
    )

def esdp_checked_library(name, linked, **kwargs):
    """A shared library by this name with the checks of debug builds, also in an optimised build.

    Args:
      name: of the target and its file.
      linked: the name for a target of the native rule.
      **kwargs: as for esdp_cc_binary.
    """
    esdp_cc_binary(name = linked, tags = ["manual"], linkshared = True, **kwargs)  # nobody wants it by itself
    _checked_library(name = name, linked = linked)
