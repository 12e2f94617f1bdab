// BoundedServer: an HTTP server that costs no more than it should, whatever its
// clients do.
#ifndef METS_DAEMON_STATUS_PAGE_BOUNDED_SERVER_H_
#define METS_DAEMON_STATUS_PAGE_BOUNDED_SERVER_H_

#include <httplib.h>

namespace mets::status_page {

// A server of the library, for small requests without bodies and one answer per
// connection. The library itself reads headers without end, and lets a client
// that sends or takes a byte now and then keep a thread for ever. Here a
// request has 2 s and 16 KiB, its answer 3 s to be taken; else the connection
// is closed. At most 64 connections are open, further ones wait in the kernel;
// stopping takes seconds at most.
class BoundedServer : public httplib::Server {
 public:
  BoundedServer();

 private:
  bool process_and_close_socket(socket_t socket) override;
};

}  // namespace mets::status_page

#endif  // METS_DAEMON_STATUS_PAGE_BOUNDED_SERVER_H_
