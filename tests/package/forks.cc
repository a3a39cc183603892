// Forks before the library is used and after, and has each process open a Context.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "esdp/context.h"

namespace {

bool Opens() { return esdp::Context::Open({.fabric = "qpip"}).ok(); }

bool ChildOpens() {
  const pid_t child = fork();
  if (child == 0) _exit(Opens() ? 0 : 1);
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main() {
  alarm(60);
  const bool before = ChildOpens();
  const bool here = Opens();
  std::printf("%d%d%d\n", before, here, ChildOpens());
}
