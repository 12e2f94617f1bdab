// libmets_torch.so until it has a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/client/torch/mets_torch_library.h"

namespace mets {
namespace {

using ::testing::HasSubstr;

class MetsTorchOpenTest : public MetsTorchLibrary {};

// One test: a process attaches its device once.
TEST_F(MetsTorchOpenTest, OnlyOpenAttachesADeviceAndFailuresAreNamed) {
  EXPECT_THAT(Thrown(100, 0), HasSubstr("mets.torch.enable()"));
  EXPECT_EQ(enter_(), METS_INVALID_ARGUMENT);
  EXPECT_THAT(last_error_(), HasSubstr("mets.torch.enable()"));
  leave_();
  hint_();

  EXPECT_EQ(open_(2), METS_FAILED);
  EXPECT_THAT(last_error_(), HasSubstr("sees 2 GPUs"));

  setenv("FAKE_METS_OPEN", "metsd is not running", 1);
  EXPECT_EQ(open_(0), METS_UNAVAILABLE);
  EXPECT_STREQ(last_error_(), "metsd is not running");
  unsetenv("FAKE_METS_OPEN");

  EXPECT_EQ(open_(0), METS_OK) << last_error_();
  EXPECT_EQ(Calls(), "device GPU-00010203-0405-0607-0809-0a0b0c0d0e0f gated\n");
  EXPECT_EQ(open_(0), METS_OK);
  EXPECT_EQ(Calls(), "");
}

}  // namespace
}  // namespace mets
