#include "client/ctl/top/top_screen.h"

#include <curses.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace mets::ctl {
namespace {

constexpr short kJobColours[TopModel::kColours] = {COLOR_BLUE,   COLOR_MAGENTA,
                                                   COLOR_CYAN,   COLOR_GREEN,
                                                   COLOR_YELLOW, COLOR_RED};
constexpr short kGoodPair = 10;
constexpr short kWarningPair = 11;
constexpr short kBadPair = 12;

attr_t AttributesOf(int style) {
  if (style >= kJob) return COLOR_PAIR(1 + style - kJob) | A_BOLD;
  switch (style) {
    case kStrong:
      return A_BOLD;
    case kDim:
      return A_DIM;
    case kHeading:
      return A_REVERSE;
    case kGood:
      return COLOR_PAIR(kGoodPair);
    case kWarning:
      return COLOR_PAIR(kWarningPair);
    case kBad:
      return COLOR_PAIR(kBadPair) | A_BOLD;
    default:
      return A_NORMAL;
  }
}

void SetColours() {
  if (!has_colors()) return;
  start_color();
  use_default_colors();
  for (int i = 0; i < TopModel::kColours; ++i) {
    init_pair(static_cast<short>(1 + i), kJobColours[i], -1);
  }
  init_pair(kGoodPair, COLOR_GREEN, -1);
  init_pair(kWarningPair, COLOR_YELLOW, -1);
  init_pair(kBadPair, COLOR_RED, -1);
}

int ToTopKey(int key) {
  switch (key) {
    case ERR:
      return kNoKey;
    case KEY_RESIZE:
      return kKeyResized;
    case KEY_UP:
      return kKeyUp;
    case KEY_DOWN:
      return kKeyDown;
    case KEY_PPAGE:
      return kKeyPageUp;
    case KEY_NPAGE:
      return kKeyPageDown;
    case KEY_LEFT:
      return kKeyLeft;
    case KEY_RIGHT:
      return kKeyRight;
    case 27:
      return kKeyEscape;
    case '\r':
    case '\n':
    case KEY_ENTER:
      return kKeyEnter;
    case KEY_BACKSPACE:
    case 127:
    case '\b':
      return kKeyBackspace;
    default:
      return key;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TopScreen>> TopScreen::Open() {
  const char* kind = std::getenv("TERM");
  // initscr would end the process.
  if (newterm(nullptr, stdout, stdin) == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the terminal '", kind == nullptr ? "" : kind,
                     "' is not known; set TERM, or use metsctl top --once"));
  }
  std::unique_ptr<TopScreen> screen(new TopScreen);
  cbreak();
  noecho();
  keypad(stdscr, TRUE);
  set_escdelay(25);
  curs_set(0);
  SetColours();
  return screen;
}

TopScreen::~TopScreen() { endwin(); }

int TopScreen::width() const { return getmaxx(stdscr); }
int TopScreen::height() const { return getmaxy(stdscr); }

void TopScreen::Show(const std::vector<TopLine>& lines) {
  erase();
  for (size_t y = 0; y < lines.size(); ++y) {
    move(static_cast<int>(y), 0);
    for (const TopSpan& span : lines[y]) {
      const attr_t attributes = AttributesOf(span.style);
      attron(attributes);
      addstr(span.text.c_str());
      attroff(attributes);
    }
  }
  refresh();
}

int TopScreen::ReadKey(absl::Duration wait) {
  timeout(static_cast<int>(absl::ToInt64Milliseconds(wait)));
  return ToTopKey(getch());
}

}  // namespace mets::ctl
