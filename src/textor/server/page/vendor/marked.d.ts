// What of this library the page uses, for `tsc --checkJs`. Written by hand.
export interface Token {
  type: string;
  raw: string;
  text: string;
  href: string;
  lang?: string;
  tokens: Token[];
}
export class Marked {
  constructor(...extensions: unknown[]);
  lexer(text: string): Token[];
  parser(tokens: Token[]): string;
}
