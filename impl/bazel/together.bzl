"""Sources of a target that are compiled as a few: the headers, and what templates make of them, take most of the time.

That is so with g++, in an optimised build, unless `--define=together=no` says otherwise, as who changes one source of many may
like. Each file is one of its own for clang: with the sanitizers, where it is also seen to include what it uses of other targets.
"""

# What is long keeps several processors busy, and memory for others.
_MOST = 10

def _batch_impl(ctx):
    ctx.actions.write(ctx.outputs.source, "".join(['#include "%s"\n' % source.short_path for source in ctx.files.srcs]))

_batch = rule(
    implementation = _batch_impl,
    attrs = {
        "source": attr.output(mandatory = True),
        "srcs": attr.label_list(allow_files = [".cc"]),
    },
)

def _batches(sources):
    """As many as are needed, of about the same size."""
    count = (len(sources) + _MOST - 1) // _MOST
    return [sources[len(sources) * i // count:len(sources) * (i + 1) // count] for i in range(count)]

def compiled_together(name, kwargs):
    """The arguments of a C++ rule, of which neighbours among the C++ sources are compiled as one.

    Args:
      name: of the target.
      kwargs: its arguments; what is in `srcs` is a list.

    Returns:
      what to give to the native rule instead.
    """
    sources = [source for source in kwargs.get("srcs", []) if source.endswith(".cc")]
    if len(sources) < 2:
        return kwargs
    batches = _batches(sources)
    made = ["%s_together_%d.cc" % (name, i) for i in range(len(batches))]
    for source, batch in zip(made, batches):
        _batch(name = source + "_text", source = source, srcs = batch, tags = ["manual"])
    native.cc_library(name = name + "_text", textual_hdrs = sources, tags = ["manual"], visibility = ["//visibility:private"])
    others = [source for source in kwargs["srcs"] if source not in sources]
    kwargs["srcs"] = others + select({
        "//impl/bazel:together": made,
        "//conditions:default": sources,
    })
    kwargs["copts"] = kwargs.get("copts", []) + select({
        "//impl/bazel:together": ["-Wno-subobject-linkage"],  # each source is a header there
        "//conditions:default": [],
    })
    kwargs["deps"] = kwargs.get("deps", []) + select({
        "//impl/bazel:together": [":" + name + "_text"],
        "//conditions:default": [],
    })
    return kwargs
