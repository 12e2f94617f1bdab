#include "common/trace/text_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/trace/temp_file.h"

namespace mets::trace {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string ManyLines() {
  std::string text;
  for (int i = 0; i < 50000; ++i) absl::StrAppend(&text, "line ", i, "\n");
  return text;
}

// Its lines, each with a newline.
absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::string text;
  const absl::StatusOr<bool> complete =
      ReadLines(path, [&](absl::string_view line) {
        absl::StrAppend(&text, line, "\n");
        return absl::OkStatus();
      });
  if (!complete.ok()) return complete.status();
  EXPECT_TRUE(*complete);
  return text;
}

void Write(const std::string& path, const std::string& text) {
  auto writer = TextFileWriter::Create(path);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const size_t half = text.size() / 2;
  ASSERT_TRUE((*writer)->Append(text.substr(0, half)).ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE((*writer)->Append("").ok());
  ASSERT_TRUE((*writer)->Append(text.substr(half)).ok());
  ASSERT_TRUE((*writer)->Close().ok());
}

TEST(TextFileTest, PlainTextComesBack) {
  TempFile file("a.csv");
  Write(file.path(), ManyLines());
  EXPECT_EQ(file.Get(), ManyLines());
  EXPECT_EQ(ReadTextFile(file.path()).value(), ManyLines());
}

TEST(TextFileTest, CompressedTextComesBackAndIsSmaller) {
  TempFile file("a.csv.xz");
  Write(file.path(), ManyLines());
  EXPECT_LT(file.Get().size(), ManyLines().size() / 10);
  EXPECT_EQ(ReadTextFile(file.path()).value(), ManyLines());
}

TEST(TextFileTest, EmptyFilesAreEmptyTexts) {
  TempFile plain("a.csv"), compressed("a.csv.xz");
  Write(plain.path(), "");
  Write(compressed.path(), "");
  EXPECT_EQ(ReadTextFile(plain.path()).value(), "");
  EXPECT_EQ(ReadTextFile(compressed.path()).value(), "");
}

TEST(TextFileTest, ACutCompressedFileIsNamedWithTheLine) {
  TempFile file("a.csv.xz");
  Write(file.path(), ManyLines());
  const std::string bytes = file.Get();
  file.Put(bytes.substr(0, bytes.size() / 2));
  const absl::Status status = ReadTextFile(file.path()).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(file.path() + ":"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the file is cut"));
}

TEST(TextFileTest, AFileThatOnlyClaimsToBeCompressedIsNamed) {
  TempFile file("a.csv.xz");
  file.Put("t_us,op,block,bytes\n");
  EXPECT_THAT(std::string(ReadTextFile(file.path()).status().message()),
              HasSubstr("it is no .xz file"));
}

TEST(TextFileTest, ADamagedCompressedFileIsNamed) {
  TempFile file("a.csv.xz");
  Write(file.path(), ManyLines());
  std::string bytes = file.Get();
  bytes[bytes.size() / 2] ^= 0x55;
  file.Put(bytes);
  const absl::Status status = ReadTextFile(file.path()).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("damaged"));
}

TEST(TextFileTest, AMissingFileIsNotFound) {
  const absl::Status status = ReadTextFile("/nowhere/a.csv").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/a.csv"));
}

TEST(TextFileTest, AFolderThatIsMissingCannotBeWrittenTo) {
  EXPECT_TRUE(
      absl::IsNotFound(TextFileWriter::Create("/nowhere/a.csv").status()));
}

TEST(TextFileTest, AFullDiskIsAnError) {
  auto writer = TextFileWriter::Create("/dev/full");
  ASSERT_TRUE(writer.ok());
  absl::Status status = (*writer)->Append(ManyLines());
  if (status.ok()) status = (*writer)->Close();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

}  // namespace
}  // namespace mets::trace
