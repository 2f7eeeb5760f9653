//! The tree of the basis: a node knows its parent, its first child, and its siblings to both sides.

use super::{NONE, Network, Node};

impl Network {
    pub(super) fn attach(&mut self, node: u32, parent: u32, edge: u32) {
        let next = std::mem::replace(&mut self.nodes[parent as usize].first_child, node);
        if next != NONE {
            self.nodes[next as usize].previous = node;
        }
        let node = &mut self.nodes[node as usize];
        (node.parent, node.edge, node.next, node.previous) = (parent, edge, next, NONE);
    }

    pub(super) fn detach(&mut self, node: u32) {
        let Node { parent, next, previous, .. } = self.nodes[node as usize];
        if previous == NONE {
            self.nodes[parent as usize].first_child = next;
        } else {
            self.nodes[previous as usize].next = next;
        }
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
    }

    /// Depths and potentials of a subtree, from its root's parent down.
    pub(super) fn refresh(&mut self, root: u32) {
        let mut node = root;
        loop {
            let Node { parent, edge, first_child, .. } = self.nodes[node as usize];
            let above = self.nodes[parent as usize];
            let arc = self.edges[edge as usize].arc;
            let cost = if arc.from == node { -arc.cost } else { arc.cost };
            let place = &mut self.nodes[node as usize];
            (place.depth, place.potential) = (above.depth + 1, above.potential + cost);
            if first_child != NONE {
                node = first_child;
                continue;
            }
            while node != root && self.nodes[node as usize].next == NONE {
                node = self.nodes[node as usize].parent;
            }
            if node == root {
                return;
            }
            node = self.nodes[node as usize].next;
        }
    }
}
