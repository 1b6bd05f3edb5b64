//! Who we are to Proxmox: an API token, or a user with a password.

use std::fmt;

use http::HeaderValue;

/// An API token. Its secret is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    id: String,
    secret: String,
}

impl Token {
    /// A token from its id (`user@realm!name`) and its secret.
    pub fn new(id: &str, secret: &str) -> Result<Token, TokenError> {
        let (id, secret) = (id.trim(), secret.trim());
        let (user, name) = id.split_once('!').ok_or(TokenError::NotATokenId)?;
        if !user.contains('@') || user.starts_with('@') || user.ends_with('@') || name.is_empty() {
            return Err(TokenError::NotATokenId);
        }
        if secret.is_empty() {
            return Err(TokenError::NoSecret);
        }
        let token = Token { id: id.to_owned(), secret: secret.to_owned() };
        token.header().map(|_| token.clone())
    }

    /// The id, which may be printed.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The value of the `Authorization` header.
    pub(crate) fn header(&self) -> Result<HeaderValue, TokenError> {
        let text = format!("PVEAPIToken={}={}", self.id, self.secret);
        let mut value = HeaderValue::from_str(&text).map_err(|_| TokenError::Unprintable)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}, secret hidden)", self.id)
    }
}

/// A user with a password, for which Proxmox gives a ticket that lives two hours. Its secret is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Password {
    user: String,
    secret: String,
}

impl Password {
    /// A user (`name@realm`) with a password, which is taken as it is.
    pub fn new(user: &str, secret: &str) -> Result<Password, TokenError> {
        let user = user.trim();
        let is_whole = user.rsplit_once('@').is_some_and(|(name, realm)| !name.is_empty() && !realm.is_empty());
        if !is_whole || user.contains('!') {
            return Err(TokenError::NotAUser);
        }
        if secret.is_empty() {
            return Err(TokenError::NoSecret);
        }
        Ok(Password { user: user.to_owned(), secret: secret.to_owned() })
    }

    /// The user, who may be printed.
    pub fn user(&self) -> &str {
        &self.user
    }

    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Password({}, secret hidden)", self.user)
    }
}

/// Either way to be somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// An API token, good until it is revoked.
    Token(Token),
    /// A password, from which tickets are made.
    Password(Password),
}

impl Credentials {
    /// Who calls, as the name of a task says it.
    pub(crate) fn user(&self) -> &str {
        match self {
            Credentials::Token(token) => token.id(),
            Credentials::Password(password) => password.user(),
        }
    }

    /// What must never be told.
    pub(crate) fn secret(&self) -> &str {
        match self {
            Credentials::Token(token) => &token.secret,
            Credentials::Password(password) => &password.secret,
        }
    }
}

impl From<Token> for Credentials {
    fn from(token: Token) -> Credentials {
        Credentials::Token(token)
    }
}

impl From<Password> for Credentials {
    fn from(password: Password) -> Credentials {
        Credentials::Password(password)
    }
}

/// Why something is no [`Token`] or [`Password`]. Never shows the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The id has another form.
    #[error("the API token ID must have the form user@realm!name")]
    NotATokenId,
    /// The user has another form.
    #[error("the user name must have the form name@realm")]
    NotAUser,
    /// The secret is empty.
    #[error("the token secret or password is empty")]
    NoSecret,
    /// The id or secret has characters that no header can carry.
    #[error("the API token contains characters that cannot be sent in an HTTP header")]
    Unprintable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_never_shows_its_secret() {
        let token = Token::new("karp@pve!node", " s3cret\n").unwrap();
        assert!(!format!("{token:?}").contains("s3cret"));
        assert!(!format!("{:?}", token.header().unwrap()).contains("s3cret"));
        assert_eq!(token.header().unwrap().as_bytes(), b"PVEAPIToken=karp@pve!node=s3cret");
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for id in ["", "karp@pve", "karp!node", "@pve!node", "karp@!node", "karp@pve!"] {
            assert_eq!(Token::new(id, "s"), Err(TokenError::NotATokenId), "{id}");
        }
        assert_eq!(Token::new("a@b!c", " "), Err(TokenError::NoSecret));
        assert_eq!(Token::new("a@b!c", "x\ny"), Err(TokenError::Unprintable));
    }

    #[test]
    fn a_password_never_shows_itself_and_needs_a_realm() {
        let password = Password::new(" root@pam ", " s3cret ").unwrap();
        assert_eq!((password.user(), password.secret()), ("root@pam", " s3cret "));
        assert!(!format!("{:?}", Credentials::from(password)).contains("s3cret"));
        for user in ["", "root", "@pam", "root@", "root@pam!token"] {
            assert_eq!(Password::new(user, "s"), Err(TokenError::NotAUser), "{user}");
        }
        assert_eq!(Password::new("a@b", ""), Err(TokenError::NoSecret));
    }
}
