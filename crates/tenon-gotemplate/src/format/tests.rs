//! What do templates get to see?
