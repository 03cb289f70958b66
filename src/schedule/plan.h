// The working state of one scheduling run: who is stored where, and how each kernel reaches what it reads.
#pragma once

#include <cstdint>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>

#include "rewrite/rewrite.h"
#include "schedule/index_map.h"
#include "schedule/merge.h"
#include "schedule/schedule.h"

namespace pg::schedule {

/// Among the slots not to be written in place: stands for intermediate values, which then are copied before a
/// write, too.
inline constexpr std::int64_t kTakeOver = -2;

/// One node as one kernel sees it at one index.
struct Entry {
  Ref node;
  int kernel;
  Index index;
  double evals;       // how often the kernel computes it
  bool in_reduce;     // inside a reduction of that kernel
  bool load = false;  // read from storage
  absl::InlinedVector<int, 3> children{};
  absl::InlinedVector<Ref, 4> ranges{};  // those a Reduce opened
  Ref row{};                             // stands for the row an Index selects until that is lowered
  Ref value{};                           // once lowered
};

struct KernelPlan {
  Ref node;  // what it stores (for a write: the After)
  int buffer;
  std::string device;
  absl::InlinedVector<Ref, 8> ranges{};
  std::int64_t next_range = 0;
  Index target{};  // index in the buffer's shape
  Ref target_shape{};
  DType store_dtype = DType::Void;  // of a view through bitcasts
  Ref part{};                       // where in an element of the buffer it is stored, in units of its size
  int value = -1;                   // entry
  Ref copy_of{};                    // a Copy: what it reads
  Ref product{};          // the large sum of products it computes: one, whose loops all else follows
  bool scatters = false;  // values that name the elements they join
  absl::flat_hash_set<Node*> reads{};  // stored nodes it loads
};

/// Runs once per attempt; an attempt that finds a write that cannot go in place is started again without it.
class Planner {
 public:
  Planner(Ref call, std::string_view device, const TargetOf& targets,
          const absl::flat_hash_set<std::int64_t>& demoted);

  /// Decides storage and fuses. Returns the slot of a Param whose write must not go in place, or -1.
  std::int64_t plan();
  /// Kernel indices in an order that respects all dependencies; empty if there is none.
  std::vector<int> order() const;
  /// A donated slot in a cycle of dependencies.
  std::int64_t slot_to_demote() const { return demotable_.empty() ? -1 : demotable_.front(); }
  bool empty() const { return kernels_.empty(); }
  Schedule finish(const std::vector<int>& order);

 private:
  void find_forced();
  void estimate_work();
  void process(Ref node);
  bool widens_for_products(Ref n, const std::vector<int>& entries) const;
  bool should_store(Ref node, const std::vector<int>& entries) const;
  bool begins_with_rest(Ref reduce, int entry) const;
  bool elsewhere(Ref node, const KernelPlan& kernel);
  int open_kernel(Ref node, int buffer, Ref shape);
  void start_kernel(Ref node, int buffer);
  void start_write(Ref node);
  void start_copy(Ref node);
  int entry(Ref node, int kernel, const Index& index, double evals, bool in_reduce);
  void expand_entry(int id);
  void children_of(Entry& e);
  int new_buffer(Ref node);
  void place_nodes();
  std::string device_of(Ref node);
  Ref lower(const Entry& e);
  Ref regroup(const Entry& e);
  Ref load(const Entry& e);
  Work work_of(const KernelPlan& kernel);

  Ref call_;
  std::string default_device_;
  const TargetOf& targets_;
  const absl::flat_hash_set<std::int64_t>& demoted_;
  std::vector<Ref> order_;  // of nodes, sources first
  std::vector<Ref> roots_;
  absl::flat_hash_set<Node*> forced_;
  absl::flat_hash_map<Node*, int> consumers_;
  absl::flat_hash_map<Node*, double> work_,
      inputs_;  // per element: arithmetic; elements read in all
  absl::flat_hash_map<Node*, std::vector<int>> uses_;
  absl::flat_hash_map<Node*, int> buffer_;  // of stored nodes
  absl::flat_hash_map<Node*, std::string> devices_;
  absl::flat_hash_set<Node*> device_free_;      // stored nodes whose sources name no device
  absl::flat_hash_map<Node*, int> producer_;    // kernel that stores a node
  absl::flat_hash_map<Node*, int> overwriter_;  // kernel that destroys it
  std::vector<std::int64_t> demotable_;
  std::vector<Entry> entries_;
  std::vector<KernelPlan> kernels_;
  std::vector<BufferInfo> buffers_;
  std::size_t params_ = 0;
};

/// What a value is stored as: the node itself, or what it only renames.
Ref storage_node(Ref node);
/// Places temporaries of a schedule in arenas by lifetime.
void plan_memory(Schedule& schedule);

/// Whether each value of a Reduce names the one element of the result that it joins:
/// where(name == arange, value, nothing), reduced along other axes than that of the arange. Such a reduction
/// takes one step for each value, so it is left in one piece and fuses with nothing but what its elements
/// begin with.
bool names_elements(Ref reduce);

/// The kernel, or kernels that each store a part of what it stores: where sums of which only every s-th term
/// counts are worth it, one for each remainder of a place.
absl::InlinedVector<Ref, 4> in_phases(Ref kernel);

/// Reductions of very many elements as reductions of parts, kept in memory, and a reduction of those.
const RuleSet& long_reductions();

}  // namespace pg::schedule
