"""What a precompiled header is made of, as a file for a test to read."""

_MadeOf = provider(doc = "The paths of what the compiler is given.", fields = ["paths"])

def _made_of_aspect_impl(target, _):
    return [_MadeOf(paths = [
        input.path
        for action in target.actions
        if action.mnemonic == "CppPrecompile"
        for input in action.inputs.to_list()
    ])]

_made_of_aspect = aspect(implementation = _made_of_aspect_impl)

def _made_of_impl(ctx):
    written = ctx.actions.declare_file(ctx.label.name + ".txt")
    lines = [
        "%s %s\n" % (header.label, path)
        for header in ctx.attr.headers
        for path in header[_MadeOf].paths
    ]
    ctx.actions.write(written, "".join(lines))
    return [DefaultInfo(files = depset([written]), runfiles = ctx.runfiles([written]))]

made_of = rule(
    implementation = _made_of_impl,
    doc = "A line for each file that goes into one of the headers: its label, the file's path.",
    attrs = {"headers": attr.label_list(aspects = [_made_of_aspect])},
)
