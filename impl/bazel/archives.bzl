"""The static libraries behind a list of targets, for a test that reads their symbols."""

def _archives_impl(ctx):
    files = []
    for dep in ctx.attr.deps:
        for linked in dep[CcInfo].linking_context.linker_inputs.to_list():
            for library in linked.libraries:
                archive = library.pic_static_library or library.static_library
                if archive:
                    files.append(archive)
    return [DefaultInfo(
        files = depset(files),
        runfiles = ctx.runfiles(files = files),
    )]

# With everything they depend on, since a call is not purer for being made one library further down.
archives = rule(
    implementation = _archives_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)
