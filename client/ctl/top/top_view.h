// TopView: the lines of metsctl top for a terminal of any size.
#ifndef METS_CLIENT_CTL_TOP_TOP_VIEW_H_
#define METS_CLIENT_CTL_TOP_TOP_VIEW_H_

#include <string>
#include <vector>

#include "client/ctl/top/top_model.h"

namespace mets::ctl {

// How a part of a line looks; kJob + a row's colour is that job's.
enum TopStyle { kPlain, kStrong, kDim, kHeading, kGood, kWarning, kBad, kJob };

struct TopSpan {
  std::string text;  // ASCII.
  int style = kPlain;
};
using TopLine = std::vector<TopSpan>;

// At most `height` lines of at most `width` characters: a title, a bar and a
// line of numbers for each device, the jobs from the `scroll`-th on, and a last
// line with keys, or `prompt` if there is one. Columns that have no room are
// left out, the last ones first.
std::vector<TopLine> DrawTop(const TopModel& model, int width, int height,
                             int scroll, const std::string& prompt);

// "aaaabb~~..": a device's memory, a character for each `width`-th of it: the
// letters of jobs, '~' for what is cached, '.' for what is free.
TopLine DrawBar(const TopModel& model, const v1::DeviceStatus& device,
                int width);

// Without styles, and without empty ends of lines.
std::string PlainText(const std::vector<TopLine>& lines);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_TOP_TOP_VIEW_H_
