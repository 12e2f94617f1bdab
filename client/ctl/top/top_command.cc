#include "client/ctl/top/top_command.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/ctl/admin_client.h"
#include "client/ctl/top/top_model.h"
#include "client/ctl/top/top_screen.h"
#include "client/ctl/top/top_view.h"
#include "common/base/status_macros.h"

namespace mets::ctl {
namespace {

constexpr int kPrintedWidth = 132;

// What the keys change.
class TopSession {
 public:
  TopSession(AdminClient client, const TopOptions& options)
      : client_(std::move(client)), options_(options) {
    model_.set_filter(options.filter);
  }

  absl::Status Refresh() {
    absl::StatusOr<v1::GetStatusResponse> status = client_.GetStatus();
    refreshed_ = absl::Now();
    if (!status.ok()) {
      model_.Fail(absl::StrCat("metsd does not answer: ",
                               std::string(status.status().message())));
      return status.status();
    }
    model_.Update(refreshed_, *std::move(status));
    return absl::OkStatus();
  }

  absl::Status Run() {
    METS_RETURN_IF_ERROR(Refresh());
    METS_ASSIGN_OR_RETURN(const std::unique_ptr<TopScreen> screen,
                          TopScreen::Open());
    for (;;) {
      const int page = std::max(1, screen->height() / 2);
      screen->Show(DrawTop(model_, screen->width(), screen->height(), scroll_,
                           Prompt()));
      const absl::Duration left = refreshed_ + options_.period - absl::Now();
      const int key = screen->ReadKey(std::max(left, absl::ZeroDuration()));
      if (key == 'q' && !typing_) return absl::OkStatus();
      Press(key, page);
      if (absl::Now() >= refreshed_ + options_.period) {
        Refresh().IgnoreError();  // It is shown.
      }
    }
  }

  absl::Status Print() {
    METS_RETURN_IF_ERROR(Refresh());
    absl::SleepFor(options_.period);
    METS_RETURN_IF_ERROR(Refresh());
    const int lines = 3 + 2 * model_.status().devices_size() +
                      std::max<int>(1, static_cast<int>(model_.Rows().size()));
    std::vector<TopLine> drawn = DrawTop(model_, kPrintedWidth, lines, 0, " ");
    drawn.pop_back();  // Keys.
    std::fputs(PlainText(drawn).c_str(), stdout);
    return absl::OkStatus();
  }

 private:
  std::string Prompt() const {
    return typing_ ? absl::StrCat("filter: ", model_.filter(), "_") : "";
  }

  void Press(int key, int page) {
    if (typing_) return Type(key);
    const int last =
        std::max<int>(0, static_cast<int>(model_.Rows().size()) - 1);
    switch (key) {
      case '<':
      case kKeyLeft:
        return model_.MoveSort(-1);
      case '>':
      case kKeyRight:
        return model_.MoveSort(1);
      case 'r':
        return model_.Reverse();
      case '/':
        typing_ = true;
        return;
      case kKeyUp:
        scroll_ -= 1;
        break;
      case kKeyDown:
        scroll_ += 1;
        break;
      case kKeyPageUp:
        scroll_ -= page;
        break;
      case kKeyPageDown:
        scroll_ += page;
        break;
      case kKeyEscape:
        model_.set_filter("");
        break;
      default:
        break;
    }
    scroll_ = std::clamp(scroll_, 0, last);
  }

  void Type(int key) {
    std::string filter = model_.filter();
    if (key == kKeyEnter || key == kKeyEscape) {
      typing_ = false;
      if (key == kKeyEscape) filter.clear();
    } else if (key == kKeyBackspace) {
      if (!filter.empty()) filter.pop_back();
    } else if (key >= 0 && key < 128 && std::isprint(key)) {
      filter += static_cast<char>(key);
    }
    scroll_ = 0;
    model_.set_filter(std::move(filter));
  }

  AdminClient client_;
  const TopOptions options_;
  TopModel model_;
  absl::Time refreshed_ = absl::InfinitePast();
  int scroll_ = 0;
  bool typing_ = false;
};

}  // namespace

absl::Status TopCommand(const TopOptions& options, const std::string& run_dir) {
  METS_ASSIGN_OR_RETURN(AdminClient client, AdminClient::Connect(run_dir));
  TopSession session(std::move(client), options);
  const bool terminal = isatty(STDOUT_FILENO) != 0 && isatty(STDIN_FILENO) != 0;
  return options.once || !terminal ? session.Print() : session.Run();
}

}  // namespace mets::ctl
