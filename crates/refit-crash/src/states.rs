//! The disk after a cut, served from the record: no image is copied. What
//! recovery and the check write stays in memory and is dropped at the next cut.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use crate::fuse::Disk;
use crate::image::{Cut, Image, image};
use crate::record::{Kind, Record, SECTOR};
use crate::sectors::{Sectors, Source};

/// Writes after the cut are stored in pages of this size.
const PAGE: u64 = 4096;
/// The most pages that can be written to one state.
const MOST_PAGES: usize = 1 << 18;
/// How many unpacked bytes of the record are cached: one state's journal is
/// mostly the next one's.
const MOST_CACHED: usize = 64 << 20;

/// A disk that holds one state after another.
pub struct States {
    record: Record,
    tear: u64,
    /// What is durable.
    base: Sectors,
    applied: usize,
    image: Image,
    written: HashMap<u64, Box<[u8]>>,
    cache: HashMap<u32, Vec<u8>>,
    cached: usize,
}

impl States {
    /// The empty disk; [`States::show`] chooses a state.
    #[must_use]
    pub fn new(record: Record, tear: u64) -> States {
        States {
            record,
            tear,
            base: Sectors::default(),
            applied: 0,
            image: Image::default(),
            written: HashMap::new(),
            cache: HashMap::new(),
            cached: 0,
        }
    }

    /// From now on the disk holds what it would hold after this cut.
    pub fn show(&mut self, cut: Cut) {
        self.show_image(image(&self.record, cut, self.tear));
    }

    /// Everything that was ever written is there.
    fn show_end(&mut self) {
        self.show_image(Image {
            durable: self.record.entries().len(),
            ..Image::default()
        });
    }

    fn show_image(&mut self, image: Image) {
        if image.durable < self.applied {
            self.base.clear();
            self.applied = 0;
        }
        for index in self.applied..image.durable {
            let entry = &self.record.entries()[index];
            let source = match entry.kind {
                Kind::Flush => continue,
                Kind::Write => Some(u32::try_from(index).expect("fewer than 2^26 entries")),
                Kind::Discard | Kind::Zero => None,
            };
            let first = entry.sector();
            self.base.set(first, first + entry.sectors(), source);
        }
        self.applied = image.durable;
        self.image = image;
        self.written.clear();
    }

    /// Where a sector's content comes from, and the first sector after it for which
    /// that may be another place.
    fn source(&self, sector: u64) -> (Source, u64) {
        let extra = self.image.extra.at(sector);
        match extra.source {
            Some(source) => (source, extra.end),
            None => {
                let base = self.base.at(sector);
                (base.source.flatten(), base.end.min(extra.end))
            }
        }
    }

    /// The data of a write.
    fn data(&mut self, index: u32) -> io::Result<&[u8]> {
        if !self.cache.contains_key(&index) {
            let mut data = Vec::new();
            self.record.data(index as usize, &mut data)?;
            if self.cached + data.len() > MOST_CACHED {
                self.cache.clear();
                self.cached = 0;
            }
            self.cached += data.len();
            self.cache.insert(index, data);
        }
        Ok(&self.cache[&index])
    }

    /// Reads from the record alone, without later writes. Both are whole sectors.
    fn read_record(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut sector = offset / SECTOR;
        let mut rest = buffer;
        while !rest.is_empty() {
            let (source, end) = self.source(sector);
            let count = (end - sector).min(rest.len() as u64 / SECTOR);
            let bytes = usize::try_from(count * SECTOR).expect("no more than the buffer has");
            let (to, after) = rest.split_at_mut(bytes);
            match source {
                None => to.fill(0),
                Some(index) => {
                    let first = self.record.entries()[index as usize].sector();
                    let from = usize::try_from((sector - first) * SECTOR).expect("within a chunk");
                    to.copy_from_slice(&self.data(index)?[from..from + bytes]);
                }
            }
            sector += count;
            rest = after;
        }
        Ok(())
    }

    /// The record has nothing in this page.
    fn is_zero(&self, page: u64) -> bool {
        let mut sector = page * PAGE / SECTOR;
        let last = (sector + PAGE / SECTOR).min(self.record.size() / SECTOR);
        while sector < last {
            let (source, end) = self.source(sector);
            if source.is_some() {
                return false;
            }
            sector = end;
        }
        true
    }

    /// A page, to be written to.
    fn page(&mut self, page: u64) -> io::Result<&mut [u8]> {
        if !self.written.contains_key(&page) {
            if self.written.len() >= MOST_PAGES {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let offset = page * PAGE;
            let length = PAGE.min(self.record.size() - offset);
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
            self.read_record(offset, &mut bytes)?;
            self.written.insert(page, bytes.into_boxed_slice());
        }
        Ok(self.written.get_mut(&page).expect("just put there"))
    }

    /// The parts of a range that lie in one page each: the page, and where in it.
    fn parts(offset: u64, length: u64) -> impl Iterator<Item = (u64, Range<usize>)> {
        let end = offset + length;
        let pages = offset / PAGE..end.div_ceil(PAGE);
        pages.map(move |page| {
            let first = offset.max(page * PAGE) - page * PAGE;
            let last = end.min((page + 1) * PAGE) - page * PAGE;
            let index = |at| usize::try_from(at).unwrap_or(usize::MAX);
            (page, index(first)..index(last))
        })
    }
}

fn is_of_sectors(offset: u64, length: u64) -> io::Result<()> {
    if offset.is_multiple_of(SECTOR) && length.is_multiple_of(SECTOR) {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

impl Disk for States {
    fn size(&self) -> u64 {
        self.record.size()
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        is_of_sectors(offset, buffer.len() as u64)?;
        let mut rest = buffer;
        for (page, range) in Self::parts(offset, rest.len() as u64) {
            let (to, after) = rest.split_at_mut(range.len());
            match self.written.get(&page) {
                Some(bytes) => to.copy_from_slice(&bytes[range]),
                None => self.read_record(page * PAGE + range.start as u64, to)?,
            }
            rest = after;
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        is_of_sectors(offset, data.len() as u64)?;
        let mut rest = data;
        for (page, range) in Self::parts(offset, data.len() as u64) {
            let (from, after) = rest.split_at(range.len());
            self.page(page)?[range].copy_from_slice(from);
            rest = after;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Recovery reads a journal block by block; with the kernel's readahead that
    /// takes a thirtieth of the requests.
    fn may_be_cached(&self) -> bool {
        true
    }

    fn zero(&mut self, offset: u64, length: u64, _is_discard: bool) -> io::Result<()> {
        is_of_sectors(offset, length)?;
        for (page, range) in Self::parts(offset, length) {
            // A discard of the whole disk must not become pages of zeroes.
            if self.written.contains_key(&page) || !self.is_zero(page) {
                self.page(page)?[range].fill(0);
            }
        }
        Ok(())
    }

    /// The name of a cut, or `end`.
    fn control(&mut self, command: &str) -> io::Result<()> {
        if command == "end" {
            self.show_end();
            return Ok(());
        }
        let cut = command.parse().map_err(|()| io::ErrorKind::InvalidInput)?;
        self.show(cut);
        Ok(())
    }
}

#[cfg(test)]
mod recovered;
#[cfg(test)]
mod tests;
