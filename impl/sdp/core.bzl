"""How the protocol core is compiled."""

load("//impl/bazel:rules.bzl", "ESDP_COPTS", "esdp_cc_library")

_EACH_MESSAGE = select({
    "//impl/sdp:optimised": ["-O3"],
    "//conditions:default": [],
})

# g++ takes over how a precompiled header was optimised: these have one of their own.
ESDP_CORE_COPTS = ESDP_COPTS + _EACH_MESSAGE

def esdp_core_library(name, **kwargs):
    """What each message goes through: what is called once in a step is to be one function with it."""
    esdp_cc_library(name = name, copts = _EACH_MESSAGE, precompiled = "core", **kwargs)
