//! The catalog of a PostgreSQL database, in one statement, so that all of it is of one moment.

use crate::{Catalog, Client, Key, Kind, Object};

/// A row of the statement: kind, table, name, place, facts, text, needs.
const COLUMNS: usize = 7;

/// Reads all objects.
pub fn read(client: &dyn Client) -> Result<Catalog, String> {
    let mut catalog = Catalog::default();
    for row in client.rows(&question(), COLUMNS)? {
        let [kind, table, name, place, facts, text, needs] =
            row.try_into().map_err(|_| "other columns".to_owned())?;
        let kind = kind_of(&kind).ok_or_else(|| format!("another kind: {kind}"))?;
        let facts = facts.split_terminator('\x1e').filter_map(|fact| {
            let (name, value) = fact.split_once('\x1f')?;
            Some((name.to_owned(), value.to_owned()))
        });
        let object = Object {
            facts: facts.collect(),
            text,
            place: place.parse().unwrap_or_default(),
            needs: needs.split_terminator('\x1e').map(str::to_owned).collect(),
        };
        catalog.0.insert(Key { kind, table, name }, object);
    }
    Ok(catalog)
}

fn kind_of(word: &str) -> Option<Kind> {
    Some(match word {
        "schema" => Kind::Schema,
        "type" => Kind::Type,
        "sequence" => Kind::Sequence,
        "function" => Kind::Function,
        "table" => Kind::Table,
        "column" => Kind::Column,
        "constraint" => Kind::Constraint,
        "index" => Kind::Index,
        "view" => Kind::View,
        "trigger" => Kind::Trigger,
        "other" => Kind::Other,
        _ => return None,
    })
}

/// Facts as one text; those that are NULL are left out.
fn facts(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("'{name}' || chr(31) || ({value})::text || chr(30)"));
    let pairs: Vec<String> = pairs.collect();
    format!("concat({})", pairs.join(", "))
}

/// What is a member of an extension belongs to that.
fn no_member(class: &str, oid: &str) -> String {
    format!(
        "NOT EXISTS (SELECT FROM pg_depend e WHERE e.deptype = 'e' AND e.classid = '{class}'::regclass AND e.objid = {oid})"
    )
}

fn select(
    kind: &str,
    table: &str,
    name: &str,
    place: &str,
    facts: &str,
    text: &str,
    rest: &str,
) -> String {
    format!("SELECT '{kind}', {table}, {name}, {place}, {facts}, {text}, '' {rest}")
}

fn comment(class: &str, oid: &str) -> String {
    format!("obj_description({oid}, '{class}')")
}

fn question() -> String {
    let mut parts = Vec::new();
    let mut part =
        |kind: &str, [table, name, place, text]: [&str; 4], pairs: &[(&str, &str)], rest: &str| {
            parts.push(select(kind, table, name, place, &facts(pairs), text, rest));
        };
    part(
        "schema",
        ["''", "s.q", "0", "''"],
        &[("comment", &comment("pg_namespace", "s.oid"))],
        "FROM spaces s WHERE s.nspname <> 'public'",
    );
    part(
        "type",
        ["''", "s.q || '.' || quote_ident(t.typname)", "0", "''"],
        &[
            (
                "values",
                "SELECT string_agg(quote_literal(enumlabel), ', ' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid",
            ),
            ("comment", &comment("pg_type", "t.oid")),
        ],
        &format!(
            "FROM pg_type t JOIN spaces s ON s.oid = t.typnamespace WHERE t.typtype = 'e' AND {}",
            no_member("pg_type", "t.oid")
        ),
    );
    part(
        "type",
        ["''", "s.q || '.' || quote_ident(t.typname)", "1", "''"],
        &[
            (
                "domain",
                "format('%s%s%s%s', format_type(t.typbasetype, t.typtypmod), ' DEFAULT ' || t.typdefault, CASE WHEN t.typnotnull \
                 THEN ' NOT NULL' END, (SELECT string_agg(format(' CONSTRAINT %I %s', o.conname, pg_get_constraintdef(o.oid)), '' \
                 ORDER BY o.conname) FROM pg_constraint o WHERE o.contypid = t.oid AND o.contype = 'c'))",
            ),
            ("comment", &comment("pg_type", "t.oid")),
        ],
        &format!(
            "FROM pg_type t JOIN spaces s ON s.oid = t.typnamespace WHERE t.typtype = 'd' AND {}",
            no_member("pg_type", "t.oid")
        ),
    );
    part(
        "sequence",
        ["''", "c.q", "0", "''"],
        &[
            ("type", "format_type(p.seqtypid, NULL)"),
            (
                "counts",
                "format('INCREMENT BY %s MINVALUE %s MAXVALUE %s START WITH %s CACHE %s %s', p.seqincrement, p.seqmin, p.seqmax, \
                 p.seqstart, p.seqcache, CASE WHEN p.seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END)",
            ),
            (
                "owned by",
                "SELECT o.q || '.' || quote_ident(a.attname) FROM pg_depend d JOIN rels o ON o.oid = d.refobjid JOIN pg_attribute a \
                 ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid \
                 AND d.deptype = 'a'",
            ),
            ("comment", &comment("pg_class", "c.oid")),
        ],
        "FROM rels c JOIN pg_sequence p ON p.seqrelid = c.oid WHERE c.relkind = 'S' AND NOT EXISTS (SELECT FROM pg_depend d \
         WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i')",
    );
    part(
        "function",
        [
            "''",
            "format('%s.%I(%s)', s.q, p.proname, pg_get_function_identity_arguments(p.oid))",
            "0",
            "pg_get_functiondef(p.oid)",
        ],
        &[
            ("definition", "pg_get_functiondef(p.oid)"),
            ("comment", &comment("pg_proc", "p.oid")),
            (
                "of",
                "CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END",
            ),
        ],
        &format!(
            "FROM pg_proc p JOIN spaces s ON s.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang WHERE p.prokind IN \
             ('f', 'p') AND l.lanname NOT IN ('c', 'internal') AND {}",
            no_member("pg_proc", "p.oid")
        ),
    );
    part(
        "table",
        ["''", "c.q", "0", "''"],
        &[
            (
                "persistence",
                "CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED' END",
            ),
            ("options", "array_to_string(c.reloptions, ', ')"),
            (
                "row security",
                "CASE WHEN c.relrowsecurity THEN 'on' END || CASE WHEN c.relforcerowsecurity THEN ', forced' ELSE '' END",
            ),
            (
                "replica identity",
                "CASE c.relreplident WHEN 'd' THEN NULL ELSE c.relreplident::text END",
            ),
            ("comment", &comment("pg_class", "c.oid")),
        ],
        "FROM tables c",
    );
    part(
        "column",
        ["c.q", "a.attname", "a.attnum", "''"],
        &[
            ("type", "format_type(a.atttypid, a.atttypmod)"),
            (
                "collation",
                "CASE WHEN a.attcollation <> t.typcollation THEN (SELECT format('%I.%I', n.nspname, o.collname) FROM \
                 pg_collation o JOIN pg_namespace n ON n.oid = o.collnamespace WHERE o.oid = a.attcollation) END",
            ),
            ("not null", "CASE WHEN a.attnotnull THEN 'NOT NULL' END"),
            (
                "default",
                "CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END",
            ),
            (
                "generated",
                "CASE WHEN a.attgenerated <> '' THEN pg_get_expr(d.adbin, d.adrelid) END",
            ),
            (
                "identity",
                "SELECT format('%s (%s)', CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, \
                 format('INCREMENT BY %s MINVALUE %s MAXVALUE %s START WITH %s CACHE %s %s', p.seqincrement, p.seqmin, p.seqmax, \
                 p.seqstart, p.seqcache, CASE WHEN p.seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END)) FROM pg_depend e JOIN pg_sequence p \
                 ON p.seqrelid = e.objid WHERE e.classid = 'pg_class'::regclass AND e.refclassid = 'pg_class'::regclass AND \
                 e.refobjid = c.oid AND e.refobjsubid = a.attnum AND e.deptype = 'i' AND a.attidentity <> ''",
            ),
            (
                "storage",
                "CASE WHEN a.attstorage <> t.typstorage THEN a.attstorage::text || ' and not ' || t.typstorage::text END",
            ),
            (
                "statistics",
                "CASE WHEN a.attstattarget >= 0 THEN a.attstattarget END",
            ),
            ("comment", "col_description(c.oid, a.attnum)"),
        ],
        "FROM tables c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t \
         ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum",
    );
    part(
        "constraint",
        ["c.q", "o.conname", "0", "''"],
        &[
            ("of", "o.contype"),
            ("definition", "pg_get_constraintdef(o.oid)"),
            (
                "refers to",
                "SELECT f.q FROM rels f WHERE f.oid = o.confrelid AND o.contype = 'f'",
            ),
            ("comment", &comment("pg_constraint", "o.oid")),
        ],
        "FROM tables c JOIN pg_constraint o ON o.conrelid = c.oid WHERE o.contype IN ('p', 'u', 'f', 'c', 'x')",
    );
    part(
        "index",
        ["c.q", "x.relname", "0", "pg_get_indexdef(i.indexrelid)"],
        &[
            ("definition", "pg_get_indexdef(i.indexrelid)"),
            (
                "state",
                "CASE WHEN NOT (i.indisvalid AND i.indisready AND i.indislive) THEN 'INVALID' END",
            ),
            ("comment", &comment("pg_class", "x.oid")),
        ],
        "FROM tables c JOIN pg_index i ON i.indrelid = c.oid JOIN pg_class x ON x.oid = i.indexrelid WHERE NOT EXISTS \
         (SELECT FROM pg_constraint o WHERE o.conindid = x.oid AND o.contype IN ('p', 'u', 'x'))",
    );
    parts.push(format!(
        "SELECT 'view', '', c.q, 0, {}, pg_get_viewdef(c.oid), (SELECT string_agg(DISTINCT r.q || chr(30), '') FROM pg_rewrite w \
         JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass \
         JOIN rels r ON r.oid = d.refobjid WHERE w.ev_class = c.oid AND r.oid <> c.oid) FROM rels c WHERE c.relkind = 'v'",
        facts(&[
            ("definition", "pg_get_viewdef(c.oid)"),
            ("options", "array_to_string(c.reloptions, ', ')"),
            ("columns", "SELECT string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum) \
              FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"),
            ("comment", &comment("pg_class", "c.oid")),
        ])
    ));
    let mut part =
        |kind: &str, [table, name, place, text]: [&str; 4], pairs: &[(&str, &str)], rest: &str| {
            parts.push(select(kind, table, name, place, &facts(pairs), text, rest));
        };
    part(
        "trigger",
        ["c.q", "g.tgname", "0", "pg_get_triggerdef(g.oid)"],
        &[
            ("definition", "pg_get_triggerdef(g.oid)"),
            (
                "enabled",
                "CASE g.tgenabled WHEN 'O' THEN NULL ELSE g.tgenabled::text END",
            ),
            ("comment", &comment("pg_trigger", "g.oid")),
        ],
        "FROM pg_trigger g JOIN rels c ON c.oid = g.tgrelid WHERE NOT g.tgisinternal AND (c.relkind = 'v' OR c.oid IN (SELECT oid FROM tables))",
    );
    // What is known by its name, with what tells most of it.
    let mut other_of = |name: &str, definition: &str, text: &str, rest: &str| {
        part(
            "other",
            ["''", name, "0", text],
            &[("definition", definition)],
            rest,
        );
    };
    other_of(
        "'extension ' || quote_ident(x.extname)",
        "NULL",
        "format('CREATE EXTENSION %I', x.extname)",
        "FROM pg_extension x WHERE x.extname <> 'plpgsql'",
    );
    other_of(
        "CASE t.typtype WHEN 'r' THEN 'range type ' WHEN 'c' THEN 'composite type ' ELSE 'base type ' END \
         || s.q || '.' || quote_ident(t.typname)",
        "concat_ws('; ', (SELECT string_agg(format('%I %s', a.attname, format_type(a.atttypid, \
         a.atttypmod)), ', ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT \
         a.attisdropped), (SELECT format_type(r.rngsubtype, NULL) FROM pg_range r WHERE r.rngtypid = t.oid))",
        "CASE t.typtype WHEN 'c' THEN format('CREATE TYPE %s.%I AS (%s)', s.q, t.typname, (SELECT string_agg(format('%I %s', \
         a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = \
         t.typrelid AND a.attnum > 0 AND NOT a.attisdropped)) ELSE '' END",
        &format!(
            "FROM pg_type t JOIN spaces s ON s.oid = t.typnamespace WHERE t.typtype IN ('r', 'c', 'b') AND t.typelem = 0 AND \
             (t.typtype <> 'c' OR EXISTS (SELECT FROM pg_class k WHERE k.oid = t.typrelid AND k.relkind = 'c')) AND {}",
            no_member("pg_type", "t.oid")
        ),
    );
    let mut other =
        |name: &str, definition: &str, rest: &str| other_of(name, definition, "''", rest);
    other(
        "CASE c.relkind WHEN 'p' THEN 'partitioned table ' WHEN 'm' THEN 'materialized view ' WHEN 'f' THEN 'foreign table ' ELSE \
         'partition or inheriting table ' END || c.q",
        "concat_ws('; ', CASE WHEN c.relkind = 'm' THEN pg_get_viewdef(c.oid) END, CASE WHEN c.relkind = 'p' THEN \
         pg_get_partkeydef(c.oid) END, pg_get_expr(c.relpartbound, c.oid), (SELECT string_agg(concat_ws(' ', quote_ident(a.attname), \
         format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NOT NULL' END, pg_get_expr(d.adbin, d.adrelid)), ', ' \
         ORDER BY a.attname) FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE \
         a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), (SELECT string_agg(o.conname || ' ' || \
         pg_get_constraintdef(o.oid), ', ' ORDER BY o.conname) FROM pg_constraint o WHERE o.conrelid = c.oid), (SELECT \
         string_agg(pg_get_indexdef(i.indexrelid), ', ' ORDER BY i.indexrelid::regclass::text) FROM pg_index i WHERE i.indrelid = c.oid))",
        "FROM rels c WHERE c.relkind IN ('p', 'm', 'f') OR (c.relkind = 'r' AND c.relpersistence <> 't' AND c.oid NOT IN (SELECT oid FROM tables))",
    );
    other(
        "format('aggregate, window or C function %s.%I(%s)', s.q, p.proname, pg_get_function_identity_arguments(p.oid))",
        "format_type(p.prorettype, NULL)",
        &format!(
            "FROM pg_proc p JOIN spaces s ON s.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang WHERE (p.prokind IN \
             ('a', 'w') OR l.lanname IN ('c', 'internal')) AND {} AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = \
             'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'i')",
            no_member("pg_proc", "p.oid")
        ),
    );
    other(
        "format('policy %I of %s', p.polname, c.q)",
        "concat_ws('; ', p.polcmd, p.polpermissive, p.polroles::text, pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))",
        "FROM pg_policy p JOIN rels c ON c.oid = p.polrelid",
    );
    other(
        "format('rule %I of %s', w.rulename, c.q)",
        "pg_get_ruledef(w.oid)",
        "FROM pg_rewrite w JOIN rels c ON c.oid = w.ev_class WHERE w.rulename <> '_RETURN'",
    );
    other(
        "format('statistics %s.%I', s.q, x.stxname)",
        "pg_get_statisticsobjdef(x.oid)",
        "FROM pg_statistic_ext x JOIN spaces s ON s.oid = x.stxnamespace",
    );
    for (word, class, column, space) in [
        ("operator", "pg_operator", "oprname", "oprnamespace"),
        ("collation", "pg_collation", "collname", "collnamespace"),
        ("conversion", "pg_conversion", "conname", "connamespace"),
        ("operator class", "pg_opclass", "opcname", "opcnamespace"),
        (
            "text search configuration",
            "pg_ts_config",
            "cfgname",
            "cfgnamespace",
        ),
        (
            "text search dictionary",
            "pg_ts_dict",
            "dictname",
            "dictnamespace",
        ),
    ] {
        other(
            &format!("format('{word} %s.%I', s.q, x.{column})"),
            "NULL",
            &format!(
                "FROM {class} x JOIN spaces s ON s.oid = x.{space} WHERE {}",
                no_member(class, "x.oid")
            ),
        );
    }
    format!(
        "SET search_path = ''; WITH spaces AS (SELECT n.oid, n.nspname, quote_ident(n.nspname) AS q FROM pg_namespace n WHERE n.nspname \
         !~ '^pg_' AND n.nspname <> 'information_schema' AND {}), rels AS (SELECT c.*, s.q || '.' || quote_ident(c.relname) AS q FROM \
         pg_class c JOIN spaces s ON s.oid = c.relnamespace WHERE {}), tables AS (SELECT r.* FROM rels r WHERE r.relkind = 'r' AND NOT \
         r.relispartition AND r.relpersistence <> 't' AND NOT EXISTS (SELECT FROM pg_inherits i WHERE r.oid IN (i.inhrelid, i.inhparent))) {}",
        no_member("pg_namespace", "n.oid"),
        no_member("pg_class", "c.oid"),
        parts.join(" UNION ALL ")
    )
}
