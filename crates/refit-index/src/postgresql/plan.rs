//! A plan as EXPLAIN (FORMAT JSON, VERBOSE) prints it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::columns::{Used, condition, order};
use refit_servers::sql::Dialect;

/// A plan.
#[derive(Clone, Debug)]
pub struct Plan {
    root: Value,
}

/// What is looked for in a plan.
const CONDITIONS: &[&str] = &[
    "Filter",
    "Index Cond",
    "Recheck Cond",
    "Hash Cond",
    "Merge Cond",
    "Join Filter",
];
const ORDERS: &[&str] = &["Sort Key", "Group Key"];

impl Plan {
    /// `None`: not a plan.
    pub fn parse(text: &str) -> Option<Plan> {
        let mut all: Vec<Value> = serde_json::from_str(text).ok()?;
        let root = all.first_mut()?.get_mut("Plan")?.take();
        Some(Plan { root })
    }

    fn nodes(&self) -> Vec<&Value> {
        let mut nodes = vec![&self.root];
        let mut at = 0;
        while at < nodes.len() {
            let below = nodes[at]["Plans"].as_array();
            nodes.splice(at + 1..at + 1, below.into_iter().flatten());
            at += 1;
        }
        nodes
    }

    /// Its cost, as the planner estimates it.
    pub fn cost(&self) -> f64 {
        self.root["Total Cost"].as_f64().unwrap_or(f64::INFINITY)
    }

    /// Names of the indexes that it reads.
    pub fn indexes(&self) -> BTreeSet<String> {
        let nodes = self.nodes().into_iter();
        let names = nodes.filter_map(|node| node["Index Name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// Its steps on one line, from the last to the first.
    pub fn steps(&self) -> String {
        let step = |node: &Value| {
            let word = |key: &str| node[key].as_str();
            let mut step = word("Node Type").unwrap_or_default().to_owned();
            for (before, key) in [(" using ", "Index Name"), (" on ", "Relation Name")] {
                if let Some(name) = word(key) {
                    step = format!("{step}{before}{name}");
                }
            }
            step
        };
        self.nodes()
            .into_iter()
            .map(step)
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// Its conditions, of all steps.
    pub fn conditions(&self) -> Vec<&str> {
        let mut all = Vec::new();
        for node in self.nodes() {
            all.extend(CONDITIONS.iter().filter_map(|key| node[*key].as_str()));
        }
        all
    }

    /// Its tables, as (schema, name), and what it asks of each.
    pub fn used(&self) -> Vec<((String, String), Used)> {
        let nodes = self.nodes();
        let mut tables: Vec<(String, String)> = Vec::new();
        let mut used: Vec<Used> = Vec::new();
        for node in &nodes {
            let word = |key: &str| node[key].as_str().map(str::to_owned);
            let names = (word("Schema"), word("Relation Name"), word("Alias"));
            if let (Some(schema), Some(name), Some(alias)) = names
                && !used.iter().any(|used| used.alias == alias)
            {
                tables.push((schema, name));
                used.push(Used::new(&alias));
            }
        }
        for text in self.conditions() {
            condition(&mut used, text, Dialect::Postgresql);
        }
        for node in &nodes {
            for keys in ORDERS.iter().filter_map(|key| node[key].as_array()) {
                let keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
                order(&mut used, &keys, Dialect::Postgresql);
            }
        }
        tables.into_iter().zip(used).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_costs_and_columns_of_a_plan() {
        let plan = Plan::parse(
            r#"[{"Plan": {"Node Type": "Sort", "Total Cost": 13.5, "Sort Key": ["o.at DESC"], "Plans": [
                {"Node Type": "Nested Loop", "Plans": [
                    {"Node Type": "Seq Scan", "Relation Name": "orders", "Schema": "public", "Alias": "o",
                     "Filter": "(o.status = 3)"},
                    {"Node Type": "Index Scan", "Index Name": "key", "Relation Name": "customers",
                     "Schema": "public", "Alias": "c", "Index Cond": "(c.id = o.customer)"}]}]}}]"#,
        )
        .expect("a plan");
        assert_eq!(
            plan.steps(),
            "Sort; Nested Loop; Seq Scan on orders; Index Scan using key on customers"
        );
        assert_eq!(plan.cost(), 13.5);
        assert_eq!(plan.indexes(), BTreeSet::from(["key".to_owned()]));
        let used = plan.used();
        assert_eq!(used[0].0, ("public".to_owned(), "orders".to_owned()));
        let candidates: Vec<String> = used[0]
            .1
            .candidates()
            .iter()
            .map(|columns| columns.join(","))
            .collect();
        for columns in ["status", "customer", "at", "status,at", "status,customer"] {
            assert!(
                candidates.iter().any(|known| known == columns),
                "{candidates:?}"
            );
        }
        assert!(Plan::parse("").is_none());
    }
}
