// The status page's files.
#ifndef METS_DAEMON_STATUS_PAGE_ASSETS_H_
#define METS_DAEMON_STATUS_PAGE_ASSETS_H_

#include <vector>

namespace mets::status_page {

struct Asset {
  const char* name;  // "page.js"
  const char* text;
};
const std::vector<Asset>& Assets();

}  // namespace mets::status_page

#endif  // METS_DAEMON_STATUS_PAGE_ASSETS_H_
