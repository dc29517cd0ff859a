//! The mails that refit sends while the program runs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use crate::promise::Promise;
use crate::smtp::{self, Smtp};

/// The mails that refit sends.
pub struct Mails {
    clients: Vec<JoinHandle<io::Result<()>>>,
    stop: Arc<AtomicBool>,
    promises: Receiver<Promise>,
}

impl Mails {
    pub fn start(smtp: &Smtp) -> Mails {
        let stop = Arc::new(AtomicBool::new(false));
        let next = Arc::new(AtomicU64::new(1));
        let (sender, promises) = mpsc::channel();
        let clients = (0..smtp::CLIENTS)
            .map(|_| {
                let (smtp, next, stop, sender) =
                    (smtp.clone(), next.clone(), stop.clone(), sender.clone());
                thread::spawn(move || smtp::send(&smtp, &next, &stop, &sender))
            })
            .collect();
        Mails {
            clients,
            stop,
            promises,
        }
    }

    /// Takes what was acknowledged; why a client gave up, if one did.
    pub fn drain(&mut self, promises: &mut Vec<Promise>) -> Option<String> {
        promises.extend(self.promises.try_iter());
        let ended = self.clients.iter().position(JoinHandle::is_finished)?;
        match self.clients.swap_remove(ended).join() {
            Ok(Err(error)) => Some(error.to_string()),
            _ => Some("a client ended".to_owned()),
        }
    }

    pub fn stop(self, promises: &mut Vec<Promise>) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            // The mail under way is acknowledged or not; both are told apart.
            let _ = client.join();
        }
        promises.extend(self.promises.try_iter());
    }
}
