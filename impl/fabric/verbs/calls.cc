#include "impl/fabric/verbs/calls.h"

namespace esdp::fabric::verbs {

// Those that are macros or inline in the libraries' headers stand behind a function of their own.
namespace {

constexpr Calls kCalls = {
    .get_devices = rdma_get_devices,
    .free_devices = rdma_free_devices,
    .query_device = ibv_query_device,
    .query_port =
        [](ibv_context* context, uint8_t port, ibv_port_attr* attributes) {
          return ibv_query_port(context, port, attributes);
        },
    .get_async_event = ibv_get_async_event,
    .ack_async_event = ibv_ack_async_event,
    .alloc_pd = ibv_alloc_pd,
    .dealloc_pd = ibv_dealloc_pd,
    .reg_mr =
        [](ibv_pd* domain, void* base, size_t length, int access) {
          return ibv_reg_mr(domain, base, length, static_cast<unsigned>(access));
        },
    .reg_dmabuf_mr = ibv_reg_dmabuf_mr,
    .dereg_mr = ibv_dereg_mr,
    .alloc_mw = [](ibv_pd* domain, ibv_mw_type type) { return ibv_alloc_mw(domain, type); },
    .dealloc_mw = [](ibv_mw* window) { return ibv_dealloc_mw(window); },
    .create_comp_channel = ibv_create_comp_channel,
    .destroy_comp_channel = ibv_destroy_comp_channel,
    .create_cq =
        [](ibv_context* context, int entries, ibv_comp_channel* channel) {
          return ibv_create_cq(context, entries, nullptr, channel, 0);
        },
    .destroy_cq = ibv_destroy_cq,
    .get_cq_event =
        [](ibv_comp_channel* channel, ibv_cq** queue) {
          void* context = nullptr;
          return ibv_get_cq_event(channel, queue, &context);
        },
    .ack_cq_events = ibv_ack_cq_events,
    .request_notify = [](ibv_cq* queue) { return ibv_req_notify_cq(queue, 0); },
    .poll_cq = [](ibv_cq* queue, int most,
                  ibv_wc* completions) { return ibv_poll_cq(queue, most, completions); },
    .post_send = [](ibv_qp* queue_pair, ibv_send_wr* work,
                    ibv_send_wr** refused) { return ibv_post_send(queue_pair, work, refused); },
    .post_receive = [](ibv_qp* queue_pair, ibv_recv_wr* work,
                       ibv_recv_wr** refused) { return ibv_post_recv(queue_pair, work, refused); },
    .modify_qp = ibv_modify_qp,
    .create_event_channel = rdma_create_event_channel,
    .destroy_event_channel = rdma_destroy_event_channel,
    .get_cm_event = rdma_get_cm_event,
    .ack_cm_event = rdma_ack_cm_event,
    .create_id = rdma_create_id,
    .destroy_id = rdma_destroy_id,
    .bind_address = rdma_bind_addr,
    .listen = rdma_listen,
    .resolve_address = rdma_resolve_addr,
    .resolve_route = rdma_resolve_route,
    .create_qp = rdma_create_qp,
    .destroy_qp = rdma_destroy_qp,
    .connect = rdma_connect,
    .accept = rdma_accept,
    .reject = rdma_reject,
    .disconnect = rdma_disconnect,
    .notify = rdma_notify,
};

}  // namespace

const Calls& LibraryCalls() { return kCalls; }

}  // namespace esdp::fabric::verbs
