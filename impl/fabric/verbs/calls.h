#ifndef ESDP_IMPL_FABRIC_VERBS_CALLS_H_
#define ESDP_IMPL_FABRIC_VERBS_CALLS_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>

namespace esdp::fabric::verbs {

// The calls of libibverbs and librdmacm that the fabric makes, so that a test can stand in for a
// device. Arguments, results and errno are those of the libraries' own manual pages.
struct Calls {
  // --- devices ---
  ibv_context** (*get_devices)(int* count);
  void (*free_devices)(ibv_context** devices);
  int (*query_device)(ibv_context* context, ibv_device_attr* attributes);
  int (*query_port)(ibv_context* context, uint8_t port, ibv_port_attr* attributes);
  int (*get_async_event)(ibv_context* context, ibv_async_event* event);
  void (*ack_async_event)(ibv_async_event* event);

  // --- memory ---
  ibv_pd* (*alloc_pd)(ibv_context* context);
  int (*dealloc_pd)(ibv_pd* domain);
  ibv_mr* (*reg_mr)(ibv_pd* domain, void* base, size_t length, int access);
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd* domain, uint64_t offset, size_t length, uint64_t address, int fd,
                           int access);
  int (*dereg_mr)(ibv_mr* region);
  ibv_mw* (*alloc_mw)(ibv_pd* domain, ibv_mw_type type);
  int (*dealloc_mw)(ibv_mw* window);

  // --- work ---
  ibv_comp_channel* (*create_comp_channel)(ibv_context* context);
  int (*destroy_comp_channel)(ibv_comp_channel* channel);
  ibv_cq* (*create_cq)(ibv_context* context, int entries, ibv_comp_channel* channel);
  int (*destroy_cq)(ibv_cq* queue);
  int (*get_cq_event)(ibv_comp_channel* channel, ibv_cq** queue);
  void (*ack_cq_events)(ibv_cq* queue, unsigned count);
  int (*request_notify)(ibv_cq* queue);
  int (*poll_cq)(ibv_cq* queue, int most, ibv_wc* completions);
  int (*post_send)(ibv_qp* queue_pair, ibv_send_wr* work, ibv_send_wr** refused);
  int (*post_receive)(ibv_qp* queue_pair, ibv_recv_wr* work, ibv_recv_wr** refused);
  int (*modify_qp)(ibv_qp* queue_pair, ibv_qp_attr* attributes, int mask);

  // --- rendezvous ---
  rdma_event_channel* (*create_event_channel)();
  void (*destroy_event_channel)(rdma_event_channel* channel);
  int (*get_cm_event)(rdma_event_channel* channel, rdma_cm_event** event);
  int (*ack_cm_event)(rdma_cm_event* event);
  int (*create_id)(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                   rdma_port_space space);
  int (*destroy_id)(rdma_cm_id* id);
  int (*bind_address)(rdma_cm_id* id, sockaddr* address);
  int (*listen)(rdma_cm_id* id, int backlog);
  int (*resolve_address)(rdma_cm_id* id, sockaddr* source, sockaddr* target, int milliseconds);
  int (*resolve_route)(rdma_cm_id* id, int milliseconds);
  int (*create_qp)(rdma_cm_id* id, ibv_pd* domain, ibv_qp_init_attr* attributes);
  void (*destroy_qp)(rdma_cm_id* id);
  int (*connect)(rdma_cm_id* id, rdma_conn_param* parameters);
  int (*accept)(rdma_cm_id* id, rdma_conn_param* parameters);
  int (*reject)(rdma_cm_id* id, const void* private_data, uint8_t bytes);
  int (*disconnect)(rdma_cm_id* id);
  int (*notify)(rdma_cm_id* id, ibv_event_type event);
};

// The libraries themselves.
const Calls& LibraryCalls();

}  // namespace esdp::fabric::verbs

#endif  // ESDP_IMPL_FABRIC_VERBS_CALLS_H_
