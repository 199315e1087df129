//! Names like one that there is not, for hints: as `difflib.get_close_matches` finds them.

/// Up to three of `known`, the likest first, whatever case they are in.
pub fn close<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    let mut scored: Vec<(f64, String, &str)> = Vec::new();
    for candidate in known {
        let lower = candidate.to_lowercase();
        let letters: Vec<char> = lower.chars().collect();
        let ratio = 2.0 * matching(&letters, &name) as f64 / (letters.len() + name.len()).max(1) as f64;
        // the cutoff of `difflib.get_close_matches`, by which Python's hints are found
        if ratio >= 0.6 {
            scored.push((ratio, lower, candidate));
        }
    }
    // as `heapq.nlargest` of pairs: of equal likeness the name that sorts last
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
    scored.into_iter().take(3).map(|(_, _, candidate)| candidate).collect()
}

/// `did you mean ...? `, or nothing.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = close(name, known);
    if near.is_empty() { String::new() } else { format!("did you mean {}? ", near.join(", ")) }
}

/// Letters in the longest block that both have, and in those left and right of it.
fn matching(a: &[char], b: &[char]) -> usize {
    let (mut longest, mut at) = (0, (0, 0));
    for i in 0..a.len() {
        for j in 0..b.len() {
            let length = a[i..].iter().zip(&b[j..]).take_while(|(x, y)| x == y).count();
            // the first of the longest blocks, as `SequenceMatcher.find_longest_match` takes it
            if length > longest {
                (longest, at) = (length, (i, j));
            }
        }
    }
    if longest == 0 {
        return 0;
    }
    longest + matching(&a[..at.0], &b[..at.1]) + matching(&a[at.0 + longest..], &b[at.1 + longest..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likest_names_come_first() {
        assert_eq!(close("startOffsets", ["startingOffsets", "endingOffsets", "tags"]), ["startingOffsets"]);
        assert_eq!(close("TOPIK", ["topic", "path"]), ["topic"]);
        assert_eq!(hint("zzz", ["topic"]), "");
    }
}
