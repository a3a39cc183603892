"""Outside libraries, taken from Debian's packages: a build downloads nothing."""

def _stub_impl(ctx):
    for path, text in ctx.attr.files.items():
        ctx.file(path, text, executable = path.endswith(".sh"))

_stub_repository = repository_rule(
    implementation = _stub_impl,
    attrs = {"files": attr.string_dict()},
)

# Bazel's own packages load these repositories, which it would download. Debian's rules_cc does not load under Debian's
# Bazel, and the native rules are all that is wanted of any of them.
def _native_rules(package, names):
    return {
        "BUILD": "",
        package + "/BUILD": "",
        package + "/defs.bzl": "\n".join(["%s = native.%s" % (name, name) for name in names]),
    }

_CC_RULES = [
    "cc_binary",
    "cc_import",
    "cc_library",
    "cc_proto_library",
    "cc_test",
    "cc_toolchain",
    "cc_toolchain_suite",
]

_JAVA_RULES = [
    "java_binary",
    "java_import",
    "java_library",
    "java_proto_library",
    "java_runtime",
    "java_toolchain",
]

_PROTO_RULES = [
    "proto_lang_toolchain",
    "proto_library",
]

# `bazel test` resolves a coverage generator even where no coverage is asked for.
_COVERAGE = {
    "stub.sh": "#!/bin/sh\n",
    "BUILD": """
sh_binary(
    name = "coverage_report_generator",
    srcs = ["stub.sh"],
    visibility = ["//visibility:public"],
)
""",
}

# Debian's shared Abseil. Only libraries that resolve a symbol are recorded in the program (as-needed), so that each
# list may name what any header of the target can reach.
_BASE = ["base", "raw_logging_internal", "log_severity", "spinlock_wait", "throw_delegate", "malloc_internal"]
_STRINGS = ["strings", "strings_internal", "int128", "str_format_internal"] + _BASE
_TIME = ["time", "time_zone", "civil_time"] + _STRINGS
_CORD = [
    "cord",
    "cord_internal",
    "cordz_info",
    "cordz_handle",
    "cordz_functions",
    "cordz_sample_token",
    "exponential_biased",
    "synchronization",
    "graphcycles_internal",
    "stacktrace",
    "symbolize",
    "debugging_internal",
    "demangle_internal",
    "strerror",
] + _TIME
_CONTAINERS = [
    "raw_hash_set",
    "hash",
    "city",
    "low_level_hash",
    "hashtablez_sampler",
    "bad_optional_access",
    "bad_variant_access",
]

_LIBRARIES = {
    "absl_status": ["absl_" + name for name in ["status", "statusor", "bad_variant_access"] + _CORD],
    "absl_time": ["absl_" + name for name in _TIME],
    "absl_span": ["absl_" + name for name in ["throw_delegate"]],
    "absl_containers": ["absl_" + name for name in _CONTAINERS + _CORD],
    "gtest_main": ["gtest_main", "gtest", "gmock", "pthread"],
    "benchmark": ["benchmark", "pthread"],
    "crypto": ["crypto"],
    "isal": ["isal"],
    "verbs": ["rdmacm", "ibverbs"],
}

# A header of each Debian package, so that a missing one is named before a compiler runs.
_HEADERS = {
    "/usr/include/absl/status/statusor.h": "libabsl-dev",
    "/usr/include/gtest/gtest.h": "libgtest-dev",
    "/usr/include/gmock/gmock.h": "libgmock-dev",
    "/usr/include/benchmark/benchmark.h": "libbenchmark-dev",
    "/usr/include/infiniband/verbs.h": "libibverbs-dev",
    "/usr/include/isa-l.h": "libisal-dev",
    "/usr/include/openssl/sha.h": "libssl-dev",
    "/usr/include/rdma/rdma_cma.h": "librdmacm-dev",
}

# The headers lie in /usr/include, which every compiler here searches as a system folder: their warnings are not ours.
_LIBRARY = """
cc_library(
    name = "{name}",
    linkopts = [{options}],
    visibility = ["//visibility:public"],
)
"""

# Bazel does not look into /usr/include, so it cannot tell that an upgrade has changed a header there. What is precompiled
# names this file among what it is made of: the packages with headers, and the compilers, of which versions.
_PACKAGES = ["*-dev", "clang-*", "cpp-*", "g++-*", "gcc-*", "libclang-*"]

def _system_impl(ctx):
    ctx.path(ctx.attr.installed)  # asked for again when this has changed
    packages = ctx.execute(["dpkg-query", "--show"] + _PACKAGES).stdout.splitlines()
    ctx.file("packages", "\n".join([line for line in packages if not line.endswith("\t")]))
    for header, package in _HEADERS.items():
        if not ctx.path(header).exists:
            fail("%s is missing: apt-get install %s (./samples/quickstart does it)" % (header, package))
    text = 'exports_files(["packages"])\n'
    for name, libraries in _LIBRARIES.items():
        options = ["-Wl,--push-state,--as-needed"] + ["-l" + lib for lib in libraries] + ["-Wl,--pop-state"]
        text += _LIBRARY.format(name = name, options = ", ".join(['"%s"' % option for option in options]))
    ctx.file("BUILD", text)

_system_repository = repository_rule(
    implementation = _system_impl,
    attrs = {"installed": attr.label(mandatory = True)},
    local = True,
)

# pybind11 with the headers of /usr/bin/python3, in a repository of its own: only who builds the binding needs the
# packages. An extension names nothing to link: the interpreter that loads it has the symbols. A program that is one links it.
# setup.py names the headers of the Python that it runs in.
_PYTHON = "/usr/include/python3.11"
_PYBIND11 = """
cc_library(
    name = "pybind11",
    hdrs = glob(["headers/**/*.h"]),
    includes = ["headers"],
    visibility = ["//visibility:public"],
)

cc_library(
    name = "interpreter",
    linkopts = ["-lpython3.11"],
    visibility = ["//visibility:public"],
    deps = [":pybind11"],
)
"""

def _python_impl(ctx):
    python = ctx.os.environ.get("ESDP_PYTHON_HEADERS", _PYTHON)
    needed = {"/usr/include/pybind11/pybind11.h": "pybind11-dev", python + "/Python.h": "python3-dev"}
    for header, package in needed.items():
        if not ctx.path(header).exists:
            fail("%s is missing: apt-get install %s" % (header, package))
    ctx.symlink(python, "headers")
    ctx.file("BUILD", _PYBIND11)

_python_repository = repository_rule(implementation = _python_impl, local = True, environ = ["ESDP_PYTHON_HEADERS"])

# Protocol buffers, for tools alone, in a repository of their own: only who builds those needs the packages.
_PROTOBUF = """
cc_library(
    name = "lite",
    linkopts = ["-lprotobuf-lite"],
    visibility = ["//visibility:public"],
)

cc_library(
    name = "full",
    linkopts = ["-l:libprotobuf.a", "-lpthread"],  # esdp_perf is copied to where there is no such library
    visibility = ["//visibility:public"],
)
"""

def _protobuf_impl(ctx):
    needed = {
        "/usr/include/google/protobuf/message_lite.h": "libprotobuf-dev",
        "/usr/bin/protoc": "protobuf-compiler",
    }
    for path, package in needed.items():
        if not ctx.path(path).exists:
            fail("%s is missing: apt-get install %s" % (path, package))
    ctx.file("BUILD", _PROTOBUF)

_protobuf_repository = repository_rule(implementation = _protobuf_impl, local = True)

def system_repositories():
    _stub_repository(name = "rules_cc", files = _native_rules("cc", _CC_RULES))
    _stub_repository(name = "rules_java", files = _native_rules("java", _JAVA_RULES))
    _stub_repository(name = "rules_proto", files = _native_rules("proto", _PROTO_RULES))
    _stub_repository(name = "remote_coverage_tools", files = _COVERAGE)
    native.local_repository(name = "platforms", path = "/usr/share/bazel/platforms")
    native.new_local_repository(
        name = "dpkg",
        build_file_content = 'exports_files(["status"])',
        path = "/var/lib/dpkg",
    )
    _system_repository(name = "system", installed = "@dpkg//:status")
    _python_repository(name = "python")
    _protobuf_repository(name = "protobuf")
