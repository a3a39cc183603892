#ifndef ESDP_IMPL_BASE_POOLED_MAP_H_
#define ESDP_IMPL_BASE_POOLED_MAP_H_

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

namespace esdp {

// A hash map that keeps the memory of what is taken out for what comes, until it is told to give it
// back, and is as it was where an
// allocation fails. Abseil's maps are neither to be used nor destroyed after that.
//
//   Owns:     its entries, which never move.
//   Threads:  not thread-safe.
//   Blocks:   never; allocates only while there are more entries than ever before.
//   Units:    –
//   Errors:   std::bad_alloc, with nothing changed.
template <typename Key, typename Value>
class PooledMap {
 public:
  size_t size() const { return map_.size(); }
  bool empty() const { return map_.empty(); }
  bool contains(const Key& key) const { return map_.contains(key); }
  auto begin() const { return map_.begin(); }
  auto begin() { return map_.begin(); }
  auto end() const { return map_.end(); }
  auto end() { return map_.end(); }
  auto find(const Key& key) const { return map_.find(key); }
  auto find(const Key& key) { return map_.find(key); }

  // Room for so many entries.
  void Reserve(size_t entries) {
    const size_t nodes = map_.size() + spare_.size();
    if (entries <= nodes) return;
    entries = std::max({entries, 2 * nodes, kFirst});
    map_.reserve(entries);
    spare_.reserve(entries);
    while (map_.size() + spare_.size() < entries) {
      Map one;
      one.emplace(Key{}, Value{});
      spare_.push_back(one.extract(one.begin()));
    }
  }
  // Gives back what is beyond room for so many entries, or for those that are there.
  void ShrinkTo(size_t entries) {
    entries = std::max({entries, map_.size(), kFirst});
    if (map_.size() + spare_.size() <= entries) return;
    std::vector<Node> kept;
    kept.reserve(entries);
    map_.reserve(entries);  // of less, too
    while (map_.size() + kept.size() < entries) {
      kept.push_back(std::move(spare_.back()));
      spare_.pop_back();
    }
    spare_ = std::move(kept);
  }
  // In place of what is there under this key.
  void Set(const Key& key, const Value& value) {
    if (const auto found = map_.find(key); found != map_.end()) {
      found->second = value;
      return;
    }
    if (spare_.empty()) Reserve(map_.size() + 1);
    Node node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = key;
    node.mapped() = value;
    map_.insert(std::move(node));  // there is room for it
  }
  // Whether there was one.
  bool Erase(const Key& key) {
    Node node = map_.extract(key);
    if (node.empty()) return false;
    spare_.push_back(std::move(node));  // there is room for it
    return true;
  }

 private:
  using Map = std::unordered_map<Key, Value>;
  using Node = typename Map::node_type;
  static constexpr size_t kFirst = 16;

  Map map_;
  std::vector<Node> spare_;  // with room for all nodes
};

}  // namespace esdp

#endif  // ESDP_IMPL_BASE_POOLED_MAP_H_
