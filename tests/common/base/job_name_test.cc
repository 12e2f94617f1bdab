#include "common/base/job_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace mets {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ValidateJobName, AcceptsTheAllowedCharacters) {
  EXPECT_TRUE(ValidateJobName("a").ok());
  EXPECT_TRUE(ValidateJobName("Train_2.resnet-50").ok());
  EXPECT_TRUE(ValidateJobName(std::string(63, 'x')).ok());
}

TEST(ValidateJobName, RefusesOthersAndSaysWhatIsAllowed) {
  for (const std::string& name : std::initializer_list<std::string>{
           "", "a b", "a/b", "größe", std::string("a\0b", 3), "{job=\"x\"}"}) {
    const absl::Status status = ValidateJobName(name);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("bad job name"), HasSubstr("1 to 63")));
  }
  EXPECT_THAT(ValidateJobName("a b").message(), HasSubstr("'a b'"));
}

TEST(ValidateJobName, ShortensAndEscapesWhatItShows) {
  const absl::Status status = ValidateJobName(std::string(5000, '\n'));
  EXPECT_THAT(status.message(), HasSubstr("5000 characters"));
  EXPECT_THAT(status.message(), Not(HasSubstr("\n")));
  EXPECT_LT(status.message().size(), 500u);
}

}  // namespace
}  // namespace mets
