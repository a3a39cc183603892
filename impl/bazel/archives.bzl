"""What is linked: the static libraries behind a list of targets, or all but the library itself."""

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

def linked_without_library(deps):
    """What these targets link, the library's own code apart: a CcLinkingContext."""
    kept = []
    for dep in deps:
        for linked in dep[CcInfo].linking_context.linker_inputs.to_list():
            package = linked.owner.package
            if linked.owner.workspace_name or not (package in ("", "api") or package.startswith("impl/")):
                kept.append(linked)
            elif linked.user_link_flags:
                kept.append(cc_common.create_linker_input(
                    owner = linked.owner,
                    user_link_flags = depset(linked.user_link_flags),
                ))
    return cc_common.create_linking_context(linker_inputs = depset(kept, order = "topological"))

def _without_library_impl(ctx):
    return [CcInfo(linking_context = linked_without_library(ctx.attr.deps))]

# For what has the library's code from elsewhere: a program that loads the installed one, or the installed one itself, which
# takes an archive of it.
without_library = rule(
    implementation = _without_library_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)
