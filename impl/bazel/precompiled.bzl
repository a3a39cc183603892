"""A header that the compiler reads once for many sources, rather than again for each of them."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _features(ctx, toolchain, wanted):
    return cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features + wanted,
        unsupported_features = ctx.disabled_features,
    )

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = _features(ctx, toolchain, [])
    copts = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts
    if cc_common.is_enabled(
        feature_configuration = _features(ctx, toolchain, ["layering_check"]),
        feature_name = "layering_check",
    ):
        # It is off or on in both the header and its users.
        copts = copts + ["-fmodules-strict-decluse"]
    if toolchain.compiler == "clang":
        # Bazel knows whether a file has changed, and does not precompile it again where its time has, as in a new clone.
        # And what the header itself makes of templates is made once, not in each of its users.
        copts = copts + ["-Xclang", "-fno-pch-timestamp", "-fpch-instantiate-templates"]
    header = ctx.actions.declare_file("{0}/{0}.h".format(ctx.label.name))
    ctx.actions.symlink(output = header, target_file = ctx.file.header)
    precompiled = ctx.actions.declare_file(header.basename + ".gch", sibling = header)
    used = cc_common.merge_cc_infos(cc_infos = [target[CcInfo] for target in ctx.attr.deps]).compilation_context
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = ctx.file.header.path,
        output_file = precompiled.path,
        user_compile_flags = copts,
        use_pic = ctx.attr.pic,
        system_include_directories = used.system_includes,
    )
    arguments = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = "c++-compile",
        variables = variables,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = "c++-compile"),
        arguments = ["-x", "c++-header"] + arguments,
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = variables,
        ),
        inputs = depset([ctx.file.header, ctx.file._packages], transitive = [toolchain.all_files, used.headers]),
        outputs = [precompiled],
        mnemonic = "CppPrecompile",
        # clang keeps the whole path of the header, and its users name it where they say what they read.
        execution_requirements = {"no-sandbox": "1", "no-cache": "1"},
    )
    files = depset([ctx.file.header, header, precompiled])
    return [
        DefaultInfo(files = files),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = files)),
    ]

_precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "header": attr.label(allow_single_file = [".h"], mandatory = True),
        # As of the sources that are to use it: to others it is a header like any other, which takes its time.
        "copts": attr.string_list(),
        # What the header includes of others that lies in a folder of its own.
        "deps": attr.label_list(providers = [CcInfo]),
        "pic": attr.bool(),
        # What the headers of the system are of: the compiler refuses what was made with others.
        "_packages": attr.label(allow_single_file = True, default = "@system//:packages"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def precompiled_header(name, **kwargs):
    """A header for sources with the same flags. Bazel makes code for shared libraries of everything, but for programs."""
    _precompiled_header(
        name = name,
        pic = select({
            "//impl/precompiled:fixed_address": False,
            "//conditions:default": True,
        }),
        **kwargs
    )
