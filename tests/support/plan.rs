//! Looking at plans.

use serde_json::Value;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

/// Runs `sql` and returns its plan: the object with the keys `Plan` and `Execution Time` of
/// `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)`.
///
/// The statement's effects are real; what runs inside a function is not shown.
///
/// # Panics
/// If the statement fails.
pub async fn explain(client: &Client, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Value {
    let statement = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}");
    let row = client.query_one(&statement, params).await.expect("explain");
    row.get::<_, Value>(0)[0].take()
}

/// The tables that a plan from [`explain`] scans sequentially.
pub fn seq_scans(plan: &Value) -> Vec<String> {
    let node = plan.get("Plan").unwrap_or(plan);
    let mut tables = Vec::new();
    if node["Node Type"] == "Seq Scan" {
        tables.push(node["Relation Name"].as_str().unwrap_or_default().to_owned());
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        tables.extend(seq_scans(child));
    }
    tables
}
