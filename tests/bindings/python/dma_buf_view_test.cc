#include <pybind11/embed.h>

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "bindings/python/core/context_object.h"
#include "bindings/python/core/event_object.h"
#include "bindings/python/core/queue_object.h"
#include "bindings/python/core/region_object.h"
#include "bindings/python/core/socket_object.h"
#include "bindings/python/core/stats_type.h"
#include "esdp/context.h"
#include "gtest/gtest.h"

// What Python sees of a dma-buf, where no device takes one: a region whose memory has no address
// here, as register_dmabuf makes it.

namespace py = pybind11;

PYBIND11_EMBEDDED_MODULE(core, module) {
  esdp::python::DefineStats(module);
  esdp::python::DefineEvent(module);
  esdp::python::DefineRegion(module);
  esdp::python::DefineQueue(module);
  esdp::python::DefineSocket(module);
  esdp::python::DefineContext(module);
}

namespace esdp::python {
namespace {

constexpr size_t kBytes = 4096;

constexpr char kAskForViews[] = R"(
def refused(exporter):
    for ask in (memoryview, bytes, bytearray):
        try:
            ask(exporter)
        except BufferError as error:
            assert "dma-buf" in str(error), str(error)
            continue
        return False
    return True

assert len(region) == 4096
assert refused(region)
assert refused(region[16:32])
assert refused(region[:0])
region.close()
try:
    memoryview(region)
    assert False
except ValueError as error:
    assert "closed" in str(error)
)";

TEST(DmaBufViewTest, AViewOfADmaBufIsABufferErrorAndHoldsNothing) {
  const py::scoped_interpreter interpreter;
  {
    const py::module_ core = py::module_::import("core");
    py::kwargs options;
    options["fabric"] = "qpip";
    const std::shared_ptr<ContextObject> context = ContextObject::Open(options);
    std::vector<std::byte> elsewhere(kBytes);
    auto region = context->handle().RegisterReadOnly(absl::MakeConstSpan(elsewhere));
    ASSERT_TRUE(region.ok());
    py::dict names;
    names["region"] = std::make_shared<RegionObject>(
        context, *std::move(region),
        HeldMemory{.view = {}, .base = nullptr, .length = kBytes, .writable = false});
    try {
      py::exec(kAskForViews, names);
    } catch (const py::error_already_set& error) {
      ADD_FAILURE() << error.what();
    }
    names.clear();
    EXPECT_EQ(context->handle().Stats().regions, 0u) << "a view that failed still held it";
  }
}

}  // namespace
}  // namespace esdp::python
