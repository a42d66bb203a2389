// An action as one row of columns that all operations share: how it is packed (action_list.cpp), hashed and shown as a table.
#pragma once

#include <limits>

#include "trace/action.hpp"

namespace retrompi {

/// What the columns hold by group; the others are 0, `vec` -1:
///
///                    peer         tag       peer2           vec      bytes     bytes2           amount   request
///   Compute                                                                                     flops
///   Sleep                                                                                       seconds
///   Kernel                        label                              length                     times
///   Mark                          label
///   PointToPoint     peer         tag       matched.source           bytes     matched.tag               request
///   SendReceive      destination  send_tag  source          receive  bytes     receive_bytes    matched  matched.source
///                                                           tag (-1: 0)                         .tag
///   OneRequest       source       tag       destination              matched   matched.tag               request
///                                                                    .source
///   SeveralRequests                                         list     count     completed
///   Collective                              root            counts   bytes     receive_bytes    flops    request
///   NewComm          made         how
///   NewWindow                               window                   bytes
///   Rma              target       tag       window                   bytes                               request
///   WindowSync       target       exclusive window          ranks    argument                            request
struct FlatAction {
  Op op = Op::Init;
  uint8_t flags = 0;
  int32_t peer = 0, tag = 0, peer2 = 0, vec = -1;
  uint32_t line = 0;
  int64_t bytes = 0, bytes2 = 0;
  double amount = 0;
  int32_t comm = 0, request = 0;
  bool operator==(const FlatAction&) const = default;
};

inline void flatten(const action::None&, FlatAction&) {}
inline void flatten(const action::Compute& x, FlatAction& f) { f.amount = x.flops; }
inline void flatten(const action::Sleep& x, FlatAction& f) { f.amount = x.seconds; }
inline void flatten(const action::Kernel& x, FlatAction& f) {
  f.tag = x.label;
  f.bytes = x.length;
  f.amount = x.times;
}
inline void flatten(const action::Mark& x, FlatAction& f) { f.tag = x.label; }
inline void flatten(const action::PointToPoint& x, FlatAction& f) {
  f.peer = x.peer;
  f.tag = x.tag;
  f.bytes = x.bytes;
  f.peer2 = x.matched.source;
  f.bytes2 = x.matched.tag;
}
inline void flatten(const action::SendReceive& x, FlatAction& f) {
  f.peer = x.destination;
  f.tag = x.send_tag;
  f.peer2 = x.source;
  f.vec = x.receive_tag == 0 ? -1 : x.receive_tag;
  f.bytes = x.bytes;
  f.bytes2 = x.receive_bytes;
  f.request = x.matched.source;
  f.amount = x.matched.tag;
}
inline void flatten(const action::OneRequest& x, FlatAction& f) {
  f.peer = x.source;
  f.peer2 = x.destination;
  f.tag = x.tag;
  f.bytes = x.matched.source;
  f.bytes2 = x.matched.tag;
}
inline void flatten(const action::SeveralRequests& x, FlatAction& f) {
  f.vec = x.list;
  f.bytes = x.count;
  f.bytes2 = x.completed;
}
inline void flatten(const action::Collective& x, FlatAction& f) {
  f.peer2 = x.root;
  f.vec = x.counts;
  f.bytes = x.bytes;
  f.bytes2 = x.receive_bytes;
  f.amount = x.flops;
}
inline void flatten(const action::NewComm& x, FlatAction& f) {
  f.peer = x.made;
  f.tag = static_cast<int32_t>(x.how);
}
inline void flatten(const action::NewWindow& x, FlatAction& f) {
  f.peer2 = x.window;
  f.bytes = x.bytes;
}
inline void flatten(const action::Rma& x, FlatAction& f) {
  f.peer = x.target;
  f.tag = x.tag;
  f.peer2 = x.window;
  f.bytes = x.bytes;
}
inline void flatten(const action::WindowSync& x, FlatAction& f) {
  f.peer = x.target;
  f.tag = x.exclusive ? 1 : 0;
  f.peer2 = x.window;
  f.vec = x.ranks;
  f.bytes = x.argument;
}

inline void unflatten(const FlatAction&, action::None&) {}
inline void unflatten(const FlatAction& f, action::Compute& x) { x.flops = f.amount; }
inline void unflatten(const FlatAction& f, action::Sleep& x) { x.seconds = f.amount; }
inline void unflatten(const FlatAction& f, action::Kernel& x) { x = {f.tag, f.bytes, f.amount}; }
inline void unflatten(const FlatAction& f, action::Mark& x) { x.label = f.tag; }
inline void unflatten(const FlatAction& f, action::PointToPoint& x) { x = {f.peer, f.tag, f.bytes, {f.peer2, static_cast<int32_t>(f.bytes2)}}; }
inline int32_t tag_of_amount(double v) { return v >= INT32_MIN && v <= INT32_MAX ? static_cast<int32_t>(v) : 0; }
inline void unflatten(const FlatAction& f, action::SendReceive& x) {
  x = {f.peer, f.tag, f.peer2, f.vec == -1 ? 0 : f.vec, f.bytes, f.bytes2, {f.request, tag_of_amount(f.amount)}};
}
inline void unflatten(const FlatAction& f, action::OneRequest& x) {
  x = {f.peer, f.peer2, f.tag, {static_cast<int32_t>(f.bytes), static_cast<int32_t>(f.bytes2)}};
}
inline void unflatten(const FlatAction& f, action::SeveralRequests& x) { x = {f.vec, f.bytes, f.bytes2}; }
inline void unflatten(const FlatAction& f, action::Collective& x) { x = {f.peer2, f.vec, f.bytes, f.bytes2, f.amount}; }
inline void unflatten(const FlatAction& f, action::NewComm& x) { x = {f.peer, static_cast<CommHow>(f.tag)}; }
inline void unflatten(const FlatAction& f, action::NewWindow& x) { x = {f.peer2, f.bytes}; }
inline void unflatten(const FlatAction& f, action::Rma& x) { x = {f.peer, f.tag, f.peer2, f.bytes}; }
inline void unflatten(const FlatAction& f, action::WindowSync& x) { x = {f.peer2, f.peer, f.vec, f.tag != 0, f.bytes}; }

inline FlatAction flatten(const Action& a) {
  FlatAction f;
  f.op = a.op;
  f.flags = a.flags;
  f.line = a.line;
  f.comm = a.comm;
  f.request = a.request;
  a.visit([&f](const auto& arguments) { flatten(arguments, f); });
  return f;
}
/// Columns without an argument in the group are ignored.
inline Action unflatten(const FlatAction& f) {
  Action a(f.op, f.line);
  a.flags = f.flags;
  a.comm = f.comm;
  if (a.kind() != ActionKind::SendReceive) a.request = f.request;
  a.visit([&f](auto& arguments) { unflatten(f, arguments); });
  return a;
}

/// The two columns that change most from action to action; a block of packed actions stores them separately.
inline void set_amount(Action& a, double amount) {
  switch (a.kind()) {
    case ActionKind::Compute:
      a.get<action::Compute>().flops = amount;
      break;
    case ActionKind::Sleep:
      a.get<action::Sleep>().seconds = amount;
      break;
    case ActionKind::Kernel:
      a.get<action::Kernel>().times = amount;
      break;
    case ActionKind::Collective:
      a.get<action::Collective>().flops = amount;
      break;
    case ActionKind::SendReceive:
      a.get<action::SendReceive>().matched.tag = tag_of_amount(amount);
      break;
    default:
      break;
  }
}
inline void set_request(Action& a, int32_t request) {
  (a.kind() == ActionKind::SendReceive ? a.get<action::SendReceive>().matched.source : a.request) = request;
}

}  // namespace retrompi
