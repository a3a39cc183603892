#include "impl/provider/residue.h"

#include <malloc.h>

namespace esdp::provider {

// What is freed between blocks that stay is not returned by free.
void Residue::ReturnFreeMemory() {
#ifdef __GLIBC__
  (void)malloc_trim(0);
#endif
}

}  // namespace esdp::provider
