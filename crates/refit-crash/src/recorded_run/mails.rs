//! The mails that refit sends while the program runs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use crate::acknowledgement::Acknowledgement;
use crate::smtp::{self, Smtp};

/// The mails that refit sends.
pub struct Mails {
    clients: Vec<JoinHandle<io::Result<()>>>,
    stop: Arc<AtomicBool>,
    acknowledgements: Receiver<Acknowledgement>,
}

impl Mails {
    pub fn start(smtp: &Smtp) -> Mails {
        let stop = Arc::new(AtomicBool::new(false));
        let next = Arc::new(AtomicU64::new(1));
        let (sender, acknowledgements) = mpsc::channel();
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
            acknowledgements,
        }
    }

    /// Takes what was acknowledged. Returns why a client gave up, if one did.
    pub fn drain(&mut self, acknowledgements: &mut Vec<Acknowledgement>) -> Option<String> {
        acknowledgements.extend(self.acknowledgements.try_iter());
        let ended = self.clients.iter().position(JoinHandle::is_finished)?;
        match self.clients.swap_remove(ended).join() {
            Ok(Err(error)) => Some(error.to_string()),
            _ => Some("a client ended".to_owned()),
        }
    }

    pub fn stop(self, acknowledgements: &mut Vec<Acknowledgement>) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            // Its last mail was acknowledged, or not: both are known.
            let _ = client.join();
        }
        acknowledgements.extend(self.acknowledgements.try_iter());
    }
}
