#include "impl/fabric/ready_descriptor.h"

#include <poll.h>

#include "gtest/gtest.h"

namespace esdp::fabric {
namespace {

bool IsReadable(const ReadyDescriptor& descriptor) {
  pollfd one{descriptor.fd(), POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

TEST(ReadyDescriptorTest, ThereIsNoneBeforeItIsOpened) { EXPECT_EQ(ReadyDescriptor().fd(), -1); }

TEST(ReadyDescriptorTest, ItIsReadableExactlyWhileItIsSet) {
  ReadyDescriptor descriptor;
  ASSERT_TRUE(descriptor.Open());
  EXPECT_FALSE(IsReadable(descriptor));
  for (int i = 0; i < 3; ++i) {
    descriptor.Set(true);
    descriptor.Set(true);
    EXPECT_TRUE(IsReadable(descriptor));
    EXPECT_TRUE(IsReadable(descriptor)) << "a look does not take it away";
    descriptor.Set(false);
    EXPECT_FALSE(IsReadable(descriptor));
    descriptor.Set(false);
    EXPECT_FALSE(IsReadable(descriptor));
  }
}

}  // namespace
}  // namespace esdp::fabric
