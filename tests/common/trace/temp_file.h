// TempFile: a path in the test's folder; the file goes with the object.
#ifndef METS_TESTS_COMMON_TRACE_TEMP_FILE_H_
#define METS_TESTS_COMMON_TRACE_TEMP_FILE_H_

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace mets::trace {

class TempFile {
 public:
  // `name` is the end of the file's name, such as "a.csv.xz".
  explicit TempFile(const std::string& name)
      : path_(absl::StrCat(testing::TempDir(), "/", getpid(), "-", name)) {}
  ~TempFile() { unlink(path_.c_str()); }

  const std::string& path() const { return path_; }
  void Put(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  std::string Get() const {
    std::stringstream bytes;
    bytes << std::ifstream(path_, std::ios::binary).rdbuf();
    return bytes.str();
  }

 private:
  const std::string path_;
};

}  // namespace mets::trace

#endif  // METS_TESTS_COMMON_TRACE_TEMP_FILE_H_
