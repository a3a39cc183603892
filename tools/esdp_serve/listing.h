#ifndef ESDP_TOOLS_ESDP_SERVE_LISTING_H_
#define ESDP_TOOLS_ESDP_SERVE_LISTING_H_

#include <esdp_files.pb.h>

#include <cstddef>

#include "absl/status/status.h"
#include "tools/esdp_files/root.h"

namespace esdp_serve {

inline constexpr int kPageEntries = 256;
inline constexpr size_t kPageBytes = 60'000;  // so that a page is a frame

// A page of a folder, in the folder's own order, which a cursor of the page before goes on in.
absl::Status ListPage(const esdp_files::wire::List& list, const esdp_files::Root& root,
                      esdp_files::wire::Answer& answer);

}  // namespace esdp_serve

#endif  // ESDP_TOOLS_ESDP_SERVE_LISTING_H_
