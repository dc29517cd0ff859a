//! The address of a server's database, and its password apart from it: that is neither shown nor
//! written, and no program gets it on its command line.

use crate::error::IndexError;

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// As typed, without the password.
    pub shown: String,
    /// The password, as the server takes it.
    pub password: Option<String>,
}

/// Whether this is how libpq names a database.
pub fn is_postgresql(text: &str) -> bool {
    let is_key = |word: &str| {
        ["host=", "dbname=", "service="]
            .iter()
            .any(|key| word.starts_with(key))
    };
    is_postgresql_url(text) || text.split_whitespace().any(is_key)
}

/// Whether this is the address of a MariaDB server.
pub fn is_mariadb(text: &str) -> bool {
    text.starts_with("mariadb://") || text.starts_with("mysql://")
}

/// How a client of MariaDB reaches a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MariadbServer {
    /// Options of mariadb(1), without the password.
    pub options: Vec<String>,
    /// The database's name.
    pub database: String,
}

/// `mariadb://USER:PASSWORD@HOST:PORT/DATABASE`; the user, the host and the port may be left out, and `?socket=PATH` may be
/// added.
///
/// # Errors
/// [`IndexError::Address`].
pub fn mariadb(text: &str) -> Result<(Address, MariadbServer), IndexError> {
    let address = url(text)?;
    let (_, rest) = address.shown.split_once("://").unwrap_or_default();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (decoded(user)?, host),
        None => (String::new(), authority),
    };
    let (host, port) = host.rsplit_once(':').unwrap_or((host, ""));
    let socket = match query.split_once('=') {
        Some(("socket", path)) => decoded(path)?,
        None if query.is_empty() => String::new(),
        _ => {
            return Err(IndexError::Address(
                "after the ? of mariadb://… there can be socket=/PATH alone",
            ));
        }
    };
    let database = decoded(path)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_$-".contains(c);
    if database.is_empty() || !database.chars().all(is_plain) {
        return Err(IndexError::Address(
            "mariadb://HOST/DATABASE needs the name of a database, of letters, digits, _, $ and -",
        ));
    }
    let host = decoded(host)?;
    let given = [
        ("user", user),
        ("host", host),
        ("port", port.to_owned()),
        ("socket", socket),
    ];
    let options = given.into_iter().filter(|(_, value)| !value.is_empty());
    let options = options.map(|(name, value)| format!("--{name}={value}"));
    let options = options.collect();
    Ok((address, MariadbServer { options, database }))
}

fn is_postgresql_url(text: &str) -> bool {
    text.starts_with("postgresql://") || text.starts_with("postgres://")
}

/// An address of libpq: a URL, or words such as `host=/run/postgresql dbname=shop`.
///
/// # Errors
/// [`IndexError::Address`], which does not show it: what cannot be read may be the password.
pub fn postgresql(text: &str) -> Result<Address, IndexError> {
    match is_postgresql_url(text) {
        true => url(text),
        false => words(text),
    }
}

fn url(text: &str) -> Result<Address, IndexError> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    if path.contains('@') || query.is_some_and(|query| query.contains('@')) {
        return Err(IndexError::Address(
            "in a URL, write @ as %40, / as %2F and ? as %3F in a user, password or name",
        ));
    }
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let (user, mut password) = match user.map(|user| user.split_once(':').unwrap_or((user, ""))) {
        Some((user, "")) => (Some(user), None),
        Some((user, password)) => (Some(user), Some(decoded(password)?)),
        None => (None, None),
    };
    let mut kept = Vec::new();
    for pair in query.unwrap_or_default().split('&') {
        match pair.split_once('=') {
            Some(("password", word)) => password = Some(decoded(word)?),
            Some((key, _)) if is_secret(key) => return Err(SECRET),
            _ if pair.is_empty() => {}
            _ => kept.push(pair),
        }
    }
    let user = user.map_or(String::new(), |user| format!("{user}@"));
    let query = match kept.is_empty() {
        true => String::new(),
        false => format!("?{}", kept.join("&")),
    };
    Ok(Address {
        shown: format!("{scheme}://{user}{host}{path}{query}"),
        password,
    })
}

const SECRET: IndexError =
    IndexError::Address("no secret but the password is taken; put others into ~/.pg_service.conf");

fn is_secret(key: &str) -> bool {
    key.contains("password") || key.contains("secret") || key.contains('%')
}

/// `%41` is `A`.
fn decoded(text: &str) -> Result<String, IndexError> {
    let wrong = || IndexError::Address("the password has a % that no two hex digits follow");
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let both = digit().and_then(|high| Some(high * 16 + digit()?));
        bytes.push(u8::try_from(both.ok_or_else(wrong)?).map_err(|_| wrong())?);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// `key=value key = 'a value'`; a backslash takes the next character as it is.
fn words(text: &str) -> Result<Address, IndexError> {
    let wrong = || IndexError::Address("words of libpq are KEY=VALUE or KEY='A VALUE'");
    let (mut shown, mut password) = (Vec::new(), None);
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or_else(wrong)?;
        let (key, after) = (key.trim_end(), after.trim_start());
        let is_quoted = after.starts_with('\'');
        let (mut value, mut end, mut closed) = (String::new(), after.len(), !is_quoted);
        let mut chars = after.char_indices().skip(usize::from(is_quoted));
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => value.extend(chars.next().map(|(_, c)| c)),
                '\'' if is_quoted => {
                    (end, closed) = (at + 1, true);
                    break;
                }
                c if c.is_whitespace() && !is_quoted => {
                    end = at;
                    break;
                }
                c => value.push(c),
            }
        }
        if !closed || key.is_empty() || key.contains(char::is_whitespace) {
            return Err(wrong());
        }
        match key {
            "password" => password = Some(value),
            key if is_secret(key) => return Err(SECRET),
            _ => shown.push(format!("{key}={}", &after[..end])),
        }
        rest = after[end..].trim_start();
    }
    Ok(Address {
        shown: shown.join(" "),
        password,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Option<String>) {
        assert!(is_postgresql(text), "{text}");
        let address = postgresql(text).expect(text);
        (address.shown, address.password)
    }

    #[test]
    fn the_password_is_apart() {
        for (text, shown, password) in [
            ("postgresql:///shop", "postgresql:///shop", None),
            (
                "postgres://me:s%40%2Fx@h:5432/shop?sslmode=require",
                "postgres://me@h:5432/shop?sslmode=require",
                Some("s@/x"),
            ),
            (
                "postgresql://me:a@b@h/shop",
                "postgresql://me@h/shop",
                Some("a@b"),
            ),
            (
                "postgresql:///shop?host=/run&password=p%20q",
                "postgresql:///shop?host=/run",
                Some("p q"),
            ),
            (
                "host=/run dbname = 'a b' password='it\\'s x' user=me",
                "host=/run dbname='a b' user=me",
                Some("it's x"),
            ),
            ("dbname=shop password=a\\ b", "dbname=shop", Some("a b")),
        ] {
            let expected = (shown.to_owned(), password.map(str::to_owned));
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_shown() {
        for text in [
            "postgresql://me:topsecret/x@h/shop",
            "postgresql://me:topsecret?x@h/shop",
            "postgresql://me:topsecret%zz@h/shop",
            "postgresql:///shop?sslpassword=topsecret",
            "postgresql:///shop?pass%77ord=topsecret",
            "dbname=shop password='topsecret",
            "dbname=shop topsecret",
        ] {
            let error = postgresql(text).expect_err(text).to_string();
            assert!(!error.contains("topsecret"), "{error}");
        }
    }

    #[test]
    fn an_address_of_mariadb_is_options_and_a_password() {
        for (text, shown, options, password) in [
            ("mariadb:///shop", "mariadb:///shop", &[][..], None),
            (
                "mysql://me:p%40ss@h:3307/shop",
                "mysql://me@h:3307/shop",
                &["--user=me", "--host=h", "--port=3307"],
                Some("p@ss"),
            ),
            (
                "mariadb://me@/shop?socket=/run/x%20y",
                "mariadb://me@/shop?socket=/run/x%20y",
                &["--user=me", "--socket=/run/x y"],
                None,
            ),
        ] {
            assert!(is_mariadb(text) && !is_postgresql(text), "{text}");
            let (address, server) = mariadb(text).expect(text);
            assert_eq!(address.shown, shown);
            assert_eq!(address.password.as_deref(), password, "{text}");
            assert_eq!(server.options, options, "{text}");
            assert_eq!(server.database, "shop");
        }
        for text in [
            "mariadb://h",
            "mariadb://h/",
            "mariadb://h/a;b",
            "mariadb://h/shop?ssl=1",
        ] {
            assert!(mariadb(text).is_err(), "{text}");
        }
    }

    #[test]
    fn files_are_not_addresses() {
        for text in ["shop.db", "/etc/postgresql/15/main", "a=b", "dbname"] {
            assert!(!is_postgresql(text), "{text}");
        }
    }
}
