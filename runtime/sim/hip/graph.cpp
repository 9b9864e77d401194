#include "runtime/sim/hip/graph.hpp"

#include <unordered_set>
#include <utility>

namespace kiln::sim::hip {

Node* Graph::add(SimDevice& device, Operation operation, std::vector<Node*> dependencies) {
    nodes.push_back(std::make_unique<Node>(Node{&device, std::move(operation), std::move(dependencies)}));
    return nodes.back().get();
}

bool Graph::joined(const std::vector<Node*>& targets, const std::vector<Node*>& ends) const {
    std::unordered_set<const Node*> seen(ends.begin(), ends.end());
    std::vector<Node*> open = ends;
    while (!open.empty()) {
        const Node* const node = open.back();
        open.pop_back();
        for (Node* const before : node->dependencies) {
            if (seen.insert(before).second) {
                open.push_back(before);
            }
        }
    }
    return std::all_of(targets.begin(), targets.end(),
                       [&](const Node* target) { return seen.contains(target); });
}

std::shared_ptr<const GraphPlan> Graph::plan() const {
    auto result = std::make_shared<GraphPlan>();
    for (const auto& node : nodes) {
        result->steps.push_back({node->device, node->operation});
    }
    return result;
}

}  // namespace kiln::sim::hip
