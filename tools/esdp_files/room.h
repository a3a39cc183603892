#ifndef ESDP_TOOLS_ESDP_FILES_ROOM_H_
#define ESDP_TOOLS_ESDP_FILES_ROOM_H_

#include <cstdint>

namespace esdp_files {

// Takes disk space for bytes that are still to come, where the file system can promise any; the
// file's size stays. 0, or ENOSPC, EDQUOT or EFBIG. What cannot fit takes nothing meanwhile: a file
// system may give out all that it has before it says no, and a peer says how long its file is.
int ReserveRoom(int fd, uint64_t offset, uint64_t length);

}  // namespace esdp_files

#endif  // ESDP_TOOLS_ESDP_FILES_ROOM_H_
