#include "common/trace/text_file.h"

#include <errno.h>
#include <lzma.h>
#include <stdio.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets::trace {
namespace {

constexpr size_t kReadBlock = 64 << 10;
constexpr size_t kLongestLine = 1 << 20;

struct FileCloser {
  void operator()(FILE* file) const { fclose(file); }
};
using File = std::unique_ptr<FILE, FileCloser>;

bool IsCompressed(const std::string& path) {
  return absl::EndsWith(path, ".xz");
}

using Take = absl::FunctionRef<absl::Status(absl::string_view)>;

absl::Status ReadBlocks(const std::string& path, Take take) {
  File file(fopen(path.c_str(), "rbe"));
  if (file == nullptr) return ErrnoToStatus(errno, absl::StrCat("open ", path));
  std::string block(kReadBlock, '\0');
  size_t got;
  while ((got = fread(block.data(), 1, block.size(), file.get())) > 0) {
    METS_RETURN_IF_ERROR(take(absl::string_view(block).substr(0, got)));
  }
  if (ferror(file.get())) {
    return ErrnoToStatus(errno, absl::StrCat("read ", path));
  }
  return absl::OkStatus();
}

// Makes lines of blocks.
class LineSplitter {
 public:
  LineSplitter(const std::string& path, Take take) : path_(path), take_(take) {}

  absl::Status Split(absl::string_view block) {
    for (;;) {
      const size_t end = block.find('\n');
      absl::StrAppend(&line_, block.substr(0, end));
      if (line_.size() > kLongestLine) {
        return absl::InvalidArgumentError(
            absl::StrCat(path_, ":", number_, ": the line has more than ",
                         kLongestLine, " characters"));
      }
      if (end == absl::string_view::npos) return absl::OkStatus();
      METS_RETURN_IF_ERROR(take_(line_));
      line_.clear();
      ++number_;
      block.remove_prefix(end + 1);
    }
  }
  // Of the line that comes next, or that is incomplete.
  uint64_t number() const { return number_; }
  bool complete() const { return line_.empty(); }

 private:
  const std::string& path_;
  const Take take_;
  std::string line_;
  uint64_t number_ = 1;
};

// A compressor's or decompressor's state.
class LzmaStream {
 public:
  ~LzmaStream() { lzma_end(&stream); }
  lzma_stream stream = LZMA_STREAM_INIT;

  // Feeds `input` and gives what comes out to `take`, until the input is used
  // up and, with LZMA_FINISH, the output is complete.
  absl::StatusOr<lzma_ret> Run(absl::string_view input, lzma_action action,
                               Take take) {
    std::string block(kReadBlock, '\0');
    stream.next_in = reinterpret_cast<const uint8_t*>(input.data());
    stream.avail_in = input.size();
    lzma_ret result = LZMA_OK;
    do {
      stream.next_out = reinterpret_cast<uint8_t*>(block.data());
      stream.avail_out = block.size();
      result = lzma_code(&stream, action);
      METS_RETURN_IF_ERROR(take(
          absl::string_view(block).substr(0, block.size() - stream.avail_out)));
    } while (result == LZMA_OK &&
             (action == LZMA_FINISH || stream.avail_in > 0 ||
              stream.avail_out == 0));
    return result;
  }
};

absl::Status SplitCompressed(const std::string& path, LineSplitter* lines) {
  LzmaStream lzma;
  if (lzma_stream_decoder(&lzma.stream, UINT64_MAX, LZMA_CONCATENATED) !=
      LZMA_OK) {
    return absl::ResourceExhaustedError("no memory for the xz decoder");
  }
  const auto decode = [&](absl::string_view block,
                          lzma_action action) -> absl::Status {
    METS_ASSIGN_OR_RETURN(const lzma_ret result,
                          lzma.Run(block, action, [&](absl::string_view text) {
                            return lines->Split(text);
                          }));
    if (result == LZMA_OK || result == LZMA_STREAM_END) return absl::OkStatus();
    const char* why = result == LZMA_BUF_ERROR      ? "the file is cut"
                      : result == LZMA_FORMAT_ERROR ? "it is no .xz file"
                                                    : "the file is damaged";
    return absl::DataLossError(absl::StrCat(
        path, ":", lines->number(), ": cannot be decompressed further: ", why));
  };
  METS_RETURN_IF_ERROR(ReadBlocks(
      path, [&](absl::string_view block) { return decode(block, LZMA_RUN); }));
  return decode("", LZMA_FINISH);
}

class PlainWriter : public TextFileWriter {
 public:
  PlainWriter(std::string path, File file)
      : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Append(absl::string_view text) override {
    if (file_ == nullptr) return Closed();
    if (fwrite(text.data(), 1, text.size(), file_.get()) == text.size()) {
      return absl::OkStatus();
    }
    const absl::Status status = Failed();
    file_ = nullptr;
    return status;
  }
  absl::Status Close() override {
    if (file_ == nullptr) return Closed();
    const int result = fclose(file_.release());
    return result == 0 ? absl::OkStatus() : Failed();
  }

 private:
  absl::Status Failed() const {
    return ErrnoToStatus(errno, absl::StrCat("write ", path_));
  }
  absl::Status Closed() const {
    return absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
  }

  const std::string path_;
  File file_;
};

class XzWriter : public TextFileWriter {
 public:
  XzWriter(std::string path, File file)
      : plain_(std::move(path), std::move(file)) {}

  absl::Status Init() {
    const lzma_ret result =
        lzma_easy_encoder(&lzma_.stream, LZMA_PRESET_DEFAULT, LZMA_CHECK_CRC64);
    return result == LZMA_OK
               ? absl::OkStatus()
               : absl::ResourceExhaustedError("no memory for the xz encoder");
  }
  absl::Status Append(absl::string_view text) override {
    // The encoder takes a second call without input for an error.
    return text.empty() ? absl::OkStatus() : Run(text, LZMA_RUN);
  }
  absl::Status Close() override {
    METS_RETURN_IF_ERROR(Run("", LZMA_FINISH));
    return plain_.Close();
  }

 private:
  absl::Status Run(absl::string_view text, lzma_action action) {
    METS_ASSIGN_OR_RETURN(
        const lzma_ret result,
        lzma_.Run(text, action, [this](absl::string_view out) {
          return plain_.Append(out);
        }));
    if (result == LZMA_OK || result == LZMA_STREAM_END) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("the xz encoder says ", result));
  }

  LzmaStream lzma_;
  PlainWriter plain_;
};

}  // namespace

absl::StatusOr<bool> ReadLines(const std::string& path, Take take) {
  LineSplitter lines(path, take);
  if (IsCompressed(path)) {
    METS_RETURN_IF_ERROR(SplitCompressed(path, &lines));
  } else {
    METS_RETURN_IF_ERROR(ReadBlocks(
        path, [&](absl::string_view block) { return lines.Split(block); }));
  }
  return lines.complete();
}

absl::StatusOr<std::unique_ptr<TextFileWriter>> TextFileWriter::Create(
    const std::string& path) {
  File file(fopen(path.c_str(), "wbe"));
  if (file == nullptr) {
    return ErrnoToStatus(errno, absl::StrCat("create ", path));
  }
  if (!IsCompressed(path)) {
    return std::make_unique<PlainWriter>(path, std::move(file));
  }
  auto writer = std::make_unique<XzWriter>(path, std::move(file));
  METS_RETURN_IF_ERROR(writer->Init());
  return writer;
}

}  // namespace mets::trace
