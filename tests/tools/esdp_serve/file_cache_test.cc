#include "tools/esdp_serve/file_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/time/time.h"

namespace esdp_serve {
namespace {

esdp_files::Descriptor AnyFile() {
  return esdp_files::Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
}
struct stat OfSize(off_t size) {
  struct stat about {};
  about.st_size = size;
  return about;
}
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

constexpr absl::Duration kInstant = absl::Nanoseconds(1);
const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(FileCacheTest, AFileIsFoundAsLongAsItsNameIsFresh) {
  FileCache cache(2);
  cache.Add("a", AnyFile(), OfSize(7), kNow);
  const FileCache::File* const found = cache.Find("a", kNow + FileCache::kFresh);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->about.st_size, 7);
  const int fd = found->file.get();
  EXPECT_TRUE(IsOpen(fd));
  EXPECT_EQ(cache.Find("b", kNow), nullptr);
  EXPECT_EQ(cache.Find("a", kNow + FileCache::kFresh + kInstant), nullptr);
  EXPECT_FALSE(IsOpen(fd));
}

TEST(FileCacheTest, ThereIsNoRoomForMoreThanItMayKeepUntilOldOnesGo) {
  FileCache cache(2);
  cache.Add("a", AnyFile(), OfSize(1), kNow);
  cache.Add("b", AnyFile(), OfSize(2), kNow + kInstant);
  cache.Add("c", AnyFile(), OfSize(3), kNow + kInstant);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.Find("c", kNow + kInstant), nullptr);
  cache.DropOld(kNow + FileCache::kFresh + kInstant);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_NE(cache.Find("b", kNow + FileCache::kFresh), nullptr);
}

TEST(FileCacheTest, ANameThatIsAddedAgainIsTheNewFile) {
  FileCache cache(2);
  cache.Add("a", AnyFile(), OfSize(1), kNow);
  const int old = cache.Find("a", kNow)->file.get();
  cache.Add("a", AnyFile(), OfSize(2), kNow);
  EXPECT_EQ(cache.Find("a", kNow)->about.st_size, 2);
  EXPECT_FALSE(IsOpen(old));
  cache.Remove("a");
  cache.Remove("a");
  EXPECT_EQ(cache.size(), 0u);
  cache.Add("a", AnyFile(), OfSize(1), kNow);
  cache.Clear();
  EXPECT_EQ(cache.Find("a", kNow), nullptr);
}

}  // namespace
}  // namespace esdp_serve
