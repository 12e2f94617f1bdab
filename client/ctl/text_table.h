// TextTable: aligned columns.
#ifndef METS_CLIENT_CTL_TEXT_TABLE_H_
#define METS_CLIENT_CTL_TEXT_TABLE_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace mets::ctl {

// Rows of text under headings; the first `left` columns are set left, the
// others (numbers) right.
class TextTable {
 public:
  TextTable(std::vector<std::string> headings, size_t left)
      : rows_{std::move(headings)}, left_(left) {}

  // REQUIRES: as many cells as headings.
  void Add(std::vector<std::string> cells) {
    METS_CHECK(cells.size() == rows_[0].size()) << cells.size() << " cells";
    rows_.push_back(std::move(cells));
  }

  std::string Render() const {
    std::vector<size_t> widths(rows_[0].size(), 0);
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i) {
        widths[i] = std::max(widths[i], row[i].size());
      }
    }
    std::string text;
    for (const auto& row : rows_) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string padding(widths[i] - row[i].size(), ' ');
        if (i > 0) line += "  ";
        line += i < left_ ? row[i] + padding : padding + row[i];
      }
      text += line + "\n";
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  const size_t left_;
};

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_TEXT_TABLE_H_
