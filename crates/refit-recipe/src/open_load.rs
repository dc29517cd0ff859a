//! What of an open loop is set about a recipe, and what is sent then.

use refit_load::{Arrivals, Plan, Protocol, Target, schedule};

use crate::conf::ConfError;
use crate::instance::Instance;
use crate::open_loop::{
    ARRIVALS_KNOB, BRIEF, CONNECTIONS, LENGTH, MOST_REQUESTS, OpenLoop, RATE_KNOB, rate, requests,
};
use crate::output::Work;
use crate::recipe::Recipe;
use crate::records::LoadValue;

impl Recipe {
    /// The open loop, where a rate is set.
    #[must_use]
    pub fn open_loop(&self) -> Option<OpenLoop> {
        let entry = self.file.load.open.as_ref()?;
        let rate = rate(self.load.get(RATE_KNOB)?)?;
        let arrivals = self.load.get(ARRIVALS_KNOB);
        let length = entry.length.map_or(LENGTH, |time| time.0);
        Some(OpenLoop {
            rate,
            arrivals: arrivals.map_or(Some(Arrivals::Poisson), |name| Arrivals::named(name))?,
            requests: requests(rate, length),
        })
    }

    /// Sets what `[load.open]` has and no knob is; `false`: it is another one.
    pub(crate) fn set_open(&mut self, name: &str, value: &str) -> Result<bool, ConfError> {
        let Some(entry) = self.file.load.open.as_ref() else {
            return Ok(false);
        };
        let length = entry.length.map_or(LENGTH, |time| time.0);
        let wrong = |form: &str, default: &str| ConfError::LoadValue {
            setting: format!("load.{name}={value}"),
            form: form.to_owned(),
            default: default.to_owned(),
        };
        match name {
            RATE_KNOB => {
                let known = rate(value).filter(|rate| requests(*rate, length) <= MOST_REQUESTS);
                let rate = known.ok_or_else(|| wrong("load.rate=NUMBER/s", "a closed loop"))?;
                self.load.insert(name.to_owned(), format!("{rate}/s"));
                self.work = Work::Number(requests(rate, length), requests(rate, length.min(BRIEF)));
            }
            ARRIVALS_KNOB => {
                let names = Arrivals::ALL.map(|(name, _)| name);
                if Arrivals::named(value).is_none() {
                    return Err(wrong(
                        &format!("load.arrivals={}", names.join("|")),
                        "poisson",
                    ));
                }
                self.load.insert(name.to_owned(), value.to_owned());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What an answer is measured at in an open loop: the rate, and what the requests hold.
    pub(crate) fn open_values(&self, open: &OpenLoop, knobs: Vec<LoadValue>) -> Vec<LoadValue> {
        let arrivals = Arrivals::ALL
            .into_iter()
            .find(|(_, one)| *one == open.arrivals);
        let own = [
            (RATE_KNOB, format!("{}/s", open.rate)),
            (
                ARRIVALS_KNOB,
                arrivals.map_or("", |(name, _)| name).to_owned(),
            ),
        ];
        let own = own.into_iter().map(|(name, value)| LoadValue {
            name: name.to_owned(),
            value,
            unit: None,
        });
        let used = knobs
            .into_iter()
            .filter(|knob| self.is_used_in_open_loop(&knob.name));
        own.chain(used).collect()
    }

    /// Whether requests of the open loop hold this knob.
    pub(crate) fn is_used_in_open_loop(&self, knob: &str) -> bool {
        let variable = format!("$REFIT_LOAD_{}", knob.to_uppercase());
        let open = self.file.load.open.as_ref();
        open.is_some_and(|open| open.request.contains(&variable))
    }
}

impl Instance {
    /// What is sent in place of `load.command`, and when; `None`: the load is a closed one. The same seed gives the same
    /// times.
    ///
    /// # Errors
    /// A request that cannot be sent.
    pub fn open_plan(&self, seed: u64) -> Result<Option<Plan>, String> {
        let recipe = self.recipe();
        let (Some(open), Some(entry)) = (recipe.open_loop(), &recipe.file.load.open) else {
            return Ok(None);
        };
        let target = match (&entry.tcp, &entry.unix) {
            (Some(port), _) => Target::Tcp(self.port(port).unwrap_or(0)),
            (None, socket) => Target::Unix(self.dir.join(socket.as_deref().unwrap_or(""))),
        };
        let protocol = Protocol::named(&entry.protocol).ok_or("load.open.protocol is none")?;
        let request = protocol.request(&self.expand(&entry.request));
        let count = usize::try_from(self.operations().unwrap_or(0)).unwrap_or(usize::MAX);
        Ok(Some(Plan {
            target,
            protocol,
            request: request.map_err(|error| format!("load.open.request: {error}"))?,
            due: schedule(open.arrivals, open.rate, count, seed),
            connections: entry.connections.unwrap_or(CONNECTIONS) as usize,
            patience: recipe.load_timeout,
        }))
    }
}
